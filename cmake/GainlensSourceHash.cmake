# Writes a header with a hash of the sources, by which the two programs see that they belong together. A script:
#   cmake -DROOT=the project -DHEADER=what to write -DLIST=a file with the sources' names, relative to ROOT -P this
file(STRINGS ${LIST} files)
set(all "")
foreach(file IN LISTS files)
  file(SHA256 ${ROOT}/${file} hash)
  string(APPEND all "${file} ${hash}\n")
endforeach()
string(SHA256 hash "${all}")
string(SUBSTRING ${hash} 0 16 hash)
file(WRITE ${HEADER} "#define GAINLENS_SOURCE_HASH \"${hash}\"\n")
