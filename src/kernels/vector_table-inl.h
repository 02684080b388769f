// How a file of vector code gives out its table of functions. To be included after Highway. It has no guard: Highway
// includes a file of vector code once for each instruction set, and the last time the macros also make the choice.

#undef GAINLENS_VECTOR_TABLE_CHOICE
#if HWY_ONCE
#define GAINLENS_VECTOR_TABLE_CHOICE(specialise, Type, name, getter) \
  namespace gainlens::kernels {                                      \
  HWY_EXPORT(getter);                                                \
  specialise const Type& name() {                                    \
    return *GAINLENS_DISPATCH(getter)();                             \
  }                                                                  \
  }
#else
#define GAINLENS_VECTOR_TABLE_CHOICE(specialise, Type, name, getter)
#endif

// Highway dispatches plain functions: this one gives the table of one instruction set.
#undef GAINLENS_VECTOR_TABLE_OF_TARGET
#define GAINLENS_VECTOR_TABLE_OF_TARGET(Type, table, getter) \
  namespace gainlens::kernels::HWY_NAMESPACE {               \
  const Type* getter() {                                     \
    return &table;                                           \
  }                                                          \
  }

/// Defines `const Type& name()`, which gives the table `name##_table` of the instruction set that is chosen at run
/// time. It stands at the end of the file, outside of all namespaces.
#undef GAINLENS_VECTOR_TABLE
#define GAINLENS_VECTOR_TABLE(Type, name)                                \
  GAINLENS_VECTOR_TABLE_OF_TARGET(Type, name##_table, name##_for_target) \
  GAINLENS_VECTOR_TABLE_CHOICE(, Type, name, name##_for_target)

/// The same for a type of numbers: the specialisation `name<Real>()` of a table `name##_table<Real>`.
#undef GAINLENS_VECTOR_TABLE_FOR
#define GAINLENS_VECTOR_TABLE_FOR(Type, name, Real)                                         \
  GAINLENS_VECTOR_TABLE_OF_TARGET(Type<Real>, name##_table<Real>, name##_for_target_##Real) \
  GAINLENS_VECTOR_TABLE_CHOICE(template <>, Type<Real>, name<Real>, name##_for_target_##Real)
