// Rows of any length for the vector code of this folder. To be included after Highway and stored_vectors-inl.h; its
// guard opens once for each instruction set.
#if defined(GAINLENS_GRADIENT_ROW_VECTORS) == defined(HWY_TARGET_TOGGLE)
#ifdef GAINLENS_GRADIENT_ROW_VECTORS
#undef GAINLENS_GRADIENT_ROW_VECTORS
#else
#define GAINLENS_GRADIENT_ROW_VECTORS
#endif

HWY_BEFORE_NAMESPACE();
namespace gainlens::kernels::HWY_NAMESPACE {
namespace {

/// The numbers of a row from index i on, 0 after `dims` numbers.
HWY_INLINE hwy::HWY_NAMESPACE::Vec<Tag<float>> LoadRow(const float* row, std::int64_t i, std::int64_t dims) {
  return LoadStored(ElementType::float32, row, i, std::min<std::int64_t>(Lanes<float>(), dims - i));
}

HWY_INLINE void StoreRow(hwy::HWY_NAMESPACE::Vec<Tag<float>> numbers, float* row, std::int64_t i, std::int64_t dims) {
  StoreStored(ElementType::float32, numbers, row, i, std::min<std::int64_t>(Lanes<float>(), dims - i));
}

HWY_INLINE float Product(const float* left, const float* right, std::int64_t dims) {
  namespace hn = hwy::HWY_NAMESPACE;
  const Tag<float> tag;
  auto sum = hn::Zero(tag);
  for (std::int64_t i = 0; i < dims; i += Lanes<float>())
    sum = hn::MulAdd(LoadRow(left, i, dims), LoadRow(right, i, dims), sum);
  return hn::GetLane(hn::SumOfLanes(tag, sum));
}

/// to += factor row.
HWY_INLINE void Add(float factor, const float* row, std::int64_t dims, float* to) {
  namespace hn = hwy::HWY_NAMESPACE;
  const Tag<float> tag;
  const auto scale = hn::Set(tag, factor);
  for (std::int64_t i = 0; i < dims; i += Lanes<float>())
    StoreRow(hn::MulAdd(scale, LoadRow(row, i, dims), LoadRow(to, i, dims)), to, i, dims);
}

}  // namespace
}  // namespace gainlens::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
