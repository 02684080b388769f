#pragma once

#include <ATen/Context.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

namespace gainlens::kernels {

/// While an object of this class exists, libtorch's products on this thread use the types of their arguments: neither
/// TF32 nor the half precision of autocast, even if the program has switched them on.
class ExactProducts {
 private:
  at::NoTF32Guard without_tf32_;
  c10::impl::ExcludeDispatchKeyGuard without_autocast_{c10::autocast_dispatch_keyset};
};

}  // namespace gainlens::kernels
