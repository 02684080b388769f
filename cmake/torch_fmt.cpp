// The compiled part of the fmt whose headers libtorch brings. Without it every source that includes libtorch and formats
// a text compiles this part again, which takes a sixth of its time. The instantiations are those that fmt/format.h
// declares as extern. Linked into main() when CMake tries whether they are those of this libtorch.
#include <fmt/format-inl.h>

FMT_BEGIN_NAMESPACE
namespace detail {
template FMT_API auto thousands_sep_impl<char>(locale_ref) -> thousands_sep_result<char>;
template FMT_API auto thousands_sep_impl<wchar_t>(locale_ref) -> thousands_sep_result<wchar_t>;
template FMT_API auto decimal_point_impl(locale_ref) -> char;
template FMT_API auto decimal_point_impl(locale_ref) -> wchar_t;
}  // namespace detail
FMT_END_NAMESPACE
