#pragma once

// Vector code is compiled once for each instruction set, by Highway, and chosen at run time. A file lists its functions
// once in a macro LIST(X, Real), each as X(Real, VectorName, function_name, (parameters), (arguments)).

// Vectors must have a size known to the compiler: the kernels hold arrays of them. Include this before Highway.
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)

/// Within a target's namespace: Highway's tables take plain functions only, so each template gets one for each Real.
#define GAINLENS_PLAIN_FUNCTION(Real, Vector, name, parameters, arguments) \
  void Vector##_##Real parameters {                                        \
    Vector<Real> arguments;                                                \
  }

/// Once for all targets: the function that the header declares calls the one for this machine.
#define GAINLENS_DISPATCH(Real, Vector, name, parameters, arguments) \
  HWY_EXPORT(Vector##_##Real);                                       \
  template <>                                                        \
  void name parameters {                                             \
    HWY_DYNAMIC_DISPATCH(Vector##_##Real) arguments;                 \
  }
