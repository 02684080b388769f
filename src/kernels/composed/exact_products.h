#pragma once

#include <ATen/Context.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

namespace gainlens::kernels {

/// While it lives, libtorch's products on this thread are of the types they are given: neither TF32 nor the half
/// precision of autocast, whatever the program around has switched on.
class ExactProducts {
 private:
  at::NoTF32Guard without_tf32_;
  c10::impl::ExcludeDispatchKeyGuard without_autocast_{c10::autocast_dispatch_keyset};
};

}  // namespace gainlens::kernels
