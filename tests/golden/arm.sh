#!/bin/bash
# Builds the wheel for aarch64 and runs it under qemu-user with torch 2.8, or the release that the variable TORCH names: the
# digests of tensors, trainings that are recorded and compared, and the golden digests of portable mode. From 2.9 on
# portable mode registers its kernels in torch's dispatcher.
# Debian or Ubuntu on x86-64, as root (apt); about 250 MB of downloads, and a quarter of an hour of emulation.
#
#     PYTHON=.venv/bin/python bash tests/golden/arm.sh [FOLDER] [MODEL ...]
#
# PYTHON has setuptools and wheel. Prints the digests that differ from tests/golden/portable.json; status 0 when none does.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
folder=$(realpath -m "${1:-$root/build/arm}")
shift || true
python=$(realpath -s "${PYTHON:-$root/.venv/bin/python}")
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
        "torch==${TORCH:-2.8.0}" numpy safetensors typing-extensions sympy mpmath networkx jinja2 markupsafe fsspec filelock tomli-w
    for wheel in "$folder"/wheels/*.whl; do python3 -m zipfile -e "$wheel" "$folder/site"; done
fi

rm -rf "$folder"/{src,tree,dist}
mkdir -p "$folder"/{src,tree}
git -C "$root" archive HEAD | tar -x -C "$folder/tree"
(cd "$folder/tree" && SAMEBITS_BUILD=native _PYTHON_HOST_PLATFORM=linux-aarch64 \
    CC=aarch64-linux-gnu-gcc LDSHARED="aarch64-linux-gnu-gcc -shared" \
    "$python" setup.py -q bdist_wheel --plat-name linux_aarch64 --dist-dir "$folder/dist")
"$python" -m zipfile -e "$folder"/dist/samebits-*-cp310-abi3-linux_aarch64.whl "$folder/src"

arm() {
    qemu-aarch64 -L "$folder/system" \
        -E LD_LIBRARY_PATH="$folder/system/usr/lib/aarch64-linux-gnu:$folder/system/lib/aarch64-linux-gnu" \
        -E PYTHONPATH="$folder/src:$folder/site" -E PYTHONHOME="$folder/system/usr" \
        "$folder/system/usr/bin/python3.11" "$@"
}

arm "$here/arm_wheel.py"
arm "$here/compute.py" "$@" > "$folder/digests.json"
"$python" "$here/differences.py" "$folder/digests.json"
