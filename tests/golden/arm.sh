#!/bin/bash
# The golden digests of portable mode on aarch64, under qemu-user, with torch 2.8 (another release than the tests' own).
# Debian or Ubuntu on x86-64, as root (apt); about 250 MB of downloads, and ten minutes of emulation.
#
#     bash tests/golden/arm.sh [FOLDER] [MODEL ...]
#
# Prints the digests that differ from tests/golden/portable.json; status 0 when none does.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
folder=$(realpath -m "${1:-$root/build/arm}")
shift || true
suffix=.cpython-311-aarch64-linux-gnu.so
mkdir -p "$folder"/{debs,system,wheels,site,src}

command -v qemu-aarch64 aarch64-linux-gnu-gcc > /dev/null ||
    apt-get install -y -qq qemu-user gcc-aarch64-linux-gnu libc6-dev-arm64-cross

if [ ! -x "$folder/system/usr/bin/python3.11" ]; then
    dpkg --add-architecture arm64
    apt-get update -qq
    (cd "$folder/debs" && apt-get download -qq {libc6,libgcc-s1,libstdc++6,zlib1g,libexpat1,libssl3,libffi8,libsqlite3-0}:arm64 \
        {libbz2-1.0,liblzma5,libreadline8,libtinfo6,libuuid1,libncursesw6,libdb5.3,libcrypt1,libtirpc3,libnsl2,libgomp1}:arm64 \
        {python3.11-minimal,libpython3.11-minimal,libpython3.11-stdlib,python3.11,libgssapi-krb5-2}:arm64)
    dpkg --remove-architecture arm64
    for package in "$folder"/debs/*.deb; do dpkg -x "$package" "$folder/system"; done
fi

if [ ! -d "$folder/site/torch" ]; then
    python3 -m pip download --quiet --no-deps --python-version 311 --only-binary=:all: --dest "$folder/wheels" \
        --platform manylinux_2_28_aarch64 --platform manylinux_2_17_aarch64 --platform manylinux2014_aarch64 --platform any \
        torch==2.8.0 numpy safetensors typing-extensions sympy mpmath networkx jinja2 markupsafe fsspec filelock
    for wheel in "$folder"/wheels/*.whl; do python3 -m zipfile -e "$wheel" "$folder/site"; done
fi

rm -rf "$folder/src"
mkdir -p "$folder/src"
cp -r "$root/src/samebits" "$folder/src/"
rm -f "$folder"/src/samebits/*.so
build=(aarch64-linux-gnu-gcc -O3 -std=gnu11 -fvisibility=hidden -fPIC -shared -pthread)
exact=(-ffp-contract=off -fno-fast-math -fno-math-errno -fno-trapping-math)
"${build[@]}" "$root"/native/*.c -o "$folder/src/samebits/_native$suffix"
"${build[@]}" "${exact[@]}" "$root"/native/portable/*.c -o "$folder/src/samebits/_portable$suffix" -lm

qemu-aarch64 -L "$folder/system" \
    -E LD_LIBRARY_PATH="$folder/system/usr/lib/aarch64-linux-gnu:$folder/system/lib/aarch64-linux-gnu" \
    -E PYTHONPATH="$folder/src:$folder/site" -E PYTHONHOME="$folder/system/usr" \
    "$folder/system/usr/bin/python3.11" "$here/compute.py" "$@" > "$folder/digests.json"
python3 "$here/differences.py" "$folder/digests.json"
