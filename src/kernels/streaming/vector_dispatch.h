#pragma once

// Highway compiles vector code once for each instruction set, and chooses one at run time. A file lists its functions
// in one macro LIST(X, Real), each as X(Real, VectorName, function_name, (parameters), (arguments)).

// The compiler must know the size of a vector, since the kernels hold arrays of them. Include this header before
// Highway.
#ifdef GAINLENS_AVX2_AT_MOST
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV | (HWY_AVX2 - 1))
#else
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#endif

/// Used in the namespace of a target. Highway's tables take only plain functions, so each template gets one plain
/// function for each Real.
#define GAINLENS_PLAIN_FUNCTION(Real, Vector, name, parameters, arguments) \
  void Vector##_##Real parameters {                                        \
    Vector<Real> arguments;                                                \
  }

/// Used once for all targets. The function that the header declares calls the one for this machine.
#define GAINLENS_DISPATCH(Real, Vector, name, parameters, arguments) \
  HWY_EXPORT(Vector##_##Real);                                       \
  template <>                                                        \
  void name parameters {                                             \
    HWY_DYNAMIC_DISPATCH(Vector##_##Real) arguments;                 \
  }
