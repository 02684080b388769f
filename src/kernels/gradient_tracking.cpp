#include "kernels/gradient_tracking.h"

#include "core/check.h"

namespace gainlens::kernels {

void check_first_derivative(std::string_view operation) {
  CHECK(!at::GradMode::is_enabled(),
        "{}: a second derivative was asked for (create_graph); only first derivatives exist", operation);
}

}  // namespace gainlens::kernels
