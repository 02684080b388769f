#pragma once

// Vector code is compiled once for each instruction set, by Highway, and chosen at run time. A file lists its functions once in a macro
// LIST(X, Real), each as X(Real, VectorName, function_name, (parameters), (arguments)).

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
