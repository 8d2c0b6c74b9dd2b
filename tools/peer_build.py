"""llama.cpp, the peer of the benchmarks: from the source package `llama-cpp-python` on PyPI, built once (release, for
this very CPU) under the user's cache. Nothing of it enters this repository. The cache's folder `peers` holds

  llama_cpp_python-VERSION.tar.gz   the source package
  source-VERSION/                   its llama.cpp
  build-VERSION-KEY/                the programs, KEY of all else that goes into them; `configured` and `built-PROGRAM`
                                    are the marks that a step was finished
"""

import glob
import gzip
import hashlib
import os
import platform
import re
import shlex
import shutil
import sys
import tarfile
import zlib

import cache_folder
from bench_common import fail, from_one, note, output_of, run_shown

PACKAGE = "llama-cpp-python"
ARCHIVE = "llama_cpp_python-"
CMAKE_OPTIONS = [
    "-DCMAKE_BUILD_TYPE=Release",
    "-DGGML_NATIVE=ON",
    "-DLLAMA_BUILD_TESTS=OFF",
    "-DLLAMA_BUILD_EXAMPLES=OFF",
    "-DLLAMA_BUILD_SERVER=OFF",
    "-DLLAMA_BUILD_APP=OFF",
    "-DLLAMA_OPENSSL=OFF",
]
DAMAGED = (tarfile.TarError, EOFError, zlib.error, gzip.BadGzipFile)


def folder():
    return cache_folder.path("peers")


def version_of(archive):
    return os.path.basename(archive).removeprefix(ARCHIVE).removesuffix(".tar.gz")


def newest_archive(version):
    """Of the source packages in the cache the newest one, or that of `version`; None if there is none."""
    pattern = glob.escape(os.path.join(folder(), ARCHIVE + (version or ""))) + ("" if version else "*") + ".tar.gz"
    return max(glob.glob(pattern), key=lambda path: [int(n) for n in re.findall(r"\d+", version_of(path))], default=None)


def download(version):
    """Brings a source package from PyPI into the cache."""
    wanted = f"{PACKAGE}=={version}" if version else PACKAGE
    note(f"fetching the source of {wanted}")
    with cache_folder.scratch(folder()) as scratch:
        run_shown([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", PACKAGE, "--dest",
                   scratch, wanted])
        found = glob.glob(os.path.join(glob.escape(scratch), ARCHIVE + "*.tar.gz"))
        if not found:
            fail(f"pip brought no source archive of {wanted}")
        target = os.path.join(folder(), os.path.basename(found[0]))
        os.replace(found[0], target)
    return target


def source_of(version):
    return os.path.join(folder(), f"source-{version}")


def unpack(archive):
    """Unpacks the llama.cpp of a source package."""
    prefix = os.path.basename(archive)[: -len(".tar.gz")] + "/vendor/llama.cpp/"
    with cache_folder.scratch(folder()) as scratch:
        with tarfile.open(archive) as tar:
            members = [m for m in tar.getmembers() if m.name.startswith(prefix) and ".." not in m.name.split("/")]
            tar.extractall(scratch, members=members)
        source = os.path.join(scratch, *prefix.split("/")[:-1])
        if not os.path.isfile(os.path.join(source, "tools", "llama-bench", "CMakeLists.txt")):
            fail(f"{archive} holds no tools/llama-bench: try another --peer-version")
        os.replace(source, source_of(version_of(archive)))


def obtain(version):
    """Has the source unpacked, whatever of it is there already; the version that it is."""
    archive = newest_archive(version) or download(version)
    if os.path.isdir(source_of(version_of(archive))):
        return version_of(archive)
    try:
        unpack(archive)
    except DAMAGED as error:
        note(f"{archive} is damaged ({error or type(error).__name__}): it is removed and fetched again")
        os.remove(archive)
        archive = download(version_of(archive))
        try:
            unpack(archive)
        except DAMAGED as again:
            os.remove(archive)
            fail(f"{archive} is damaged again ({again or type(again).__name__}); it is removed")
    return version_of(archive)


def cpu_features():
    """What GGML_NATIVE=ON makes the compiler ask the processor for, as the system tells it."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            found = re.search(r"^(?:flags|Features)\s*:(.*)$", file.read(), re.MULTILINE)
    except OSError:
        found = None
    return " ".join(sorted(found[1].split())) if found else platform.processor()


def compiler(name):
    """The one that CMake takes: of the environment, with options of its own perhaps, else the system's."""
    return shlex.split(os.environ.get(name, "")) or [{"CC": "cc", "CXX": "c++"}[name]]


def build_folder(version):
    compilers = [output_of([*compiler(name), "--version"]) for name in ("CC", "CXX")]
    flags = [os.environ.get(name, "") for name in ("CFLAGS", "CXXFLAGS", "LDFLAGS")]
    parts = [version, *CMAKE_OPTIONS, *compilers, *flags, platform.machine(), cpu_features()]
    key = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]
    return os.path.join(folder(), f"build-{version}-{key}")


def mark(path):
    with open(path, "wb"):
        pass


def build(version, jobs, target):
    """Builds one program. A half-done configuration is thrown away; a half-done build goes on where it stopped, which
    Ninja does without taking half an object for a whole one."""
    into = build_folder(version)
    configured = os.path.join(into, "configured")
    note(f"building {target} in {into} (the first about five minutes on two cores, once)")
    if not os.path.isfile(configured):
        shutil.rmtree(into, ignore_errors=True)
        run_shown(["cmake", "-G", "Ninja", "-S", source_of(version), "-B", into, *CMAKE_OPTIONS])
        mark(configured)
    polite = ["nice", "-n", "10"] if shutil.which("nice") else []
    run_shown([*polite, "cmake", "--build", into, "--target", target, "-j", str(jobs)])
    if not os.path.isfile(os.path.join(into, "bin", target)):
        fail(f"the build left no {target} in {into}/bin")
    mark(os.path.join(into, f"built-{target}"))


def built(version, target):
    """The path of a program, None if its build is not finished."""
    into = build_folder(version)
    binary = os.path.join(into, "bin", target)
    return binary if os.path.isfile(os.path.join(into, f"built-{target}")) and os.path.isfile(binary) else None


def program(version, jobs, target="llama-bench"):
    """The path of one of llama.cpp's programs, built if it is not there yet."""
    archive = newest_archive(version)
    ready = archive and built(version_of(archive), target)
    if ready:
        return ready
    with cache_folder.locked(folder()):
        version = obtain(version)
        if not built(version, target):
            build(version, jobs, target)
    return built(version, target)


def compiled(jobs, source, name):
    """A program of ours against the newest llama.cpp's library, as complete as it is new: path of `name`."""
    libraries = os.path.dirname(program(None, jobs))
    target = os.path.join(os.path.dirname(libraries), name)
    if os.path.isfile(target) and os.path.getmtime(target) > os.path.getmtime(source):
        return target
    with cache_folder.locked(folder()), cache_folder.scratch(folder()) as scratch:
        vendor = source_of(obtain(None))
        made = os.path.join(scratch, name)
        run_shown([
            *compiler("CXX"), "-std=c++20", "-O2", f"-I{vendor}/include", f"-I{vendor}/ggml/include", source,
            f"-L{libraries}", f"-Wl,-rpath,{libraries}", f"-Wl,-rpath-link,{libraries}", "-lllama", "-lggml",
            "-lggml-base", "-o", made])
        os.replace(made, target)
    return target


def add_options(parser):
    parser.add_argument("--peer-version", metavar="VERSION",
                        help=f"of {PACKAGE}; default: the newest in the cache, else the newest on PyPI")
    parser.add_argument("--jobs", type=from_one, default=2, help="parallel compilers (default 2)")
