#!/usr/bin/env bash
# Builds the engine with AddressSanitizer and UndefinedBehaviorSanitizer, looks at what the kernels' object files give
# the linker, and runs the engine's tests on it. Called by `make check-native`, with the Python to use as argument.
# CHECK_TESTS: other tests than all of tests/unit/engine.
set -euo pipefail
cd "$(dirname "$0")/.."
python=${1:?the Python to build for and to test with}
tests=${CHECK_TESTS:-tests/unit/engine}
build=$PWD/native/build/sanitized
place=$PWD/native/build/sanitized-package

"$python" -m pip install --quiet --disable-pip-version-check --no-deps --upgrade --target "$place" \
  --config-settings=build-dir="$build" --config-settings=cmake.define.HEADWAY_SANITIZE=ON \
  --config-settings=install.strip=false ./native

# Each file of kernels is compiled for other instructions. The linker keeps one of all weak functions of a name, for
# every file; and what runs when the module is loaded runs on every processor. So these files may have neither.
for object in "$build"/CMakeFiles/_native.dir/cpp/kernels_*.o; do
  case "$object" in */kernels_choose.cpp.o) continue ;; esac
  found=$(nm --demangle "$object" | grep -E ' [WVui] |_GLOBAL__sub_I' | grep -vE '_GLOBAL__sub_I_00099_|__asan_|__ubsan_|__odr_asan|DW.ref.__gxx_personality' || true)
  if [ -n "$found" ]; then
    echo "native: $object has functions that the linker may give to other files, or code that runs when the module is loaded:" >&2
    echo "$found" >&2
    echo "Give them internal linkage (an anonymous namespace), or write them without the library's templates." >&2
    exit 1
  fi
done

compiler=$(sed -n 's/^CMAKE_CXX_COMPILER:[A-Z]*=//p' "$build/CMakeCache.txt")
preload=""
# libstdc++ too: the sanitizer wants to see its exceptions, and Python does not load it by itself.
for library in libasan.so libubsan.so libstdc++.so; do
  path=$("$compiler" -print-file-name="$library")
  if [ ! -f "$path" ]; then
    echo "native: $compiler has no $library; wanted GCC with its sanitizers. Name another compiler with CXX." >&2
    exit 1
  fi
  preload="$preload $path"
done

# Python's own memory is never freed in full, so leaks are not looked for.
export ASAN_OPTIONS=detect_leaks=0:halt_on_error=1:allocator_may_return_null=1
export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
export PYTHONPATH="$PWD/src:$place"
# --capture=sys: what the sanitizers write is not held back.
LD_PRELOAD="$preload" "$python" -m pytest --capture=sys -n 2 --dist loadfile --durations=5 "$tests"
