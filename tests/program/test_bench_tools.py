"""The benchmark tools with bad options, bad programs and interrupted runs: each is one message, found before minutes of
measuring, and an interrupted step is done again. The programs are scripts made here; nothing is measured."""
import io
import json
import os
import pathlib
import subprocess
import sys
import tarfile
import tempfile
import unittest
from unittest import mock

TOOLS = pathlib.Path(__file__).resolve().parents[2] / "tools"
sys.path.insert(0, str(TOOLS))
import cache_folder  # noqa: E402
import peer_build  # noqa: E402

BENCH_ROW = {"prompt_tokens_per_s": 10.0, "generate_tokens_per_s": 5.0, "weights_bytes": 7, "bytes_per_token": 6,
             "macs_per_token": {"int8": 3, "f32": 2}}
# As driftwood does: refuses a context beyond the model's at once, else reports.
DRIFTWOOD = f"""case "$*" in
  *--context\\ 9999*) echo 'driftwood: invalid_argument: the model allows 1 to 8192 tokens' >&2; exit 1 ;;
esac
echo measured >>"$0.calls"
echo '{json.dumps(BENCH_ROW)}'"""
LLAMA_BENCH = """echo '[{"n_prompt": 1, "avg_ts": 8.0, "model_size": 9}, {"n_prompt": 0, "avg_ts": 4.0, "model_size": 9}]'"""
PEAKS = """printf '{"read_gb_per_s": {"%s": 1.0}, "int8": {"gmac_per_s": {"%s": 1.0}}, "f32": {"gmac_per_s": {"%s": 1.0}}}' \
$1 $1 $1"""


class Scratch(unittest.TestCase):
    """A folder of its own with a cache in it."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        patch = mock.patch.dict(os.environ, {"XDG_CACHE_HOME": str(self.folder / "cache")})
        patch.start()
        self.addCleanup(patch.stop)
        self.peers = pathlib.Path(peer_build.folder())
        self.peers.mkdir(parents=True)

    def script(self, name, text):
        path = self.folder / name
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
        return str(path)

    def archive(self, version="0.0.1"):
        """A source package as unpack() needs it."""
        path = self.peers / f"llama_cpp_python-{version}.tar.gz"
        with tarfile.open(path, "w:gz") as tar:
            for name in ("CMakeLists.txt", "tools/llama-bench/CMakeLists.txt"):
                info = tarfile.TarInfo(f"llama_cpp_python-{version}/vendor/llama.cpp/{name}")
                info.size = 4096
                tar.addfile(info, io.BytesIO(os.urandom(4096)))
        return path


class Options(Scratch):
    def setUp(self):
        super().setUp()
        self.model = self.script("model.gguf", "")
        self.driftwood = self.script("driftwood", DRIFTWOOD)
        self.peaks = self.script("peaks", PEAKS)
        self.archive()
        build = pathlib.Path(peer_build.build_folder("0.0.1"))
        (build / "bin").mkdir(parents=True)
        self.script(build / "bin" / "llama-bench", LLAMA_BENCH)
        (build / "built-llama-bench").touch()

    def run_tool(self, name, *options):
        return subprocess.run([sys.executable, TOOLS / name, *map(str, options)], capture_output=True, text=True,
                              timeout=60)

    def refused(self, words, name, *options):
        done = self.run_tool(name, *options)
        self.assertNotEqual(done.returncode, 0, done.stdout)
        self.assertIn(words, done.stderr)
        self.assertNotIn("Traceback", done.stderr)
        return done

    def peers_run(self, *options, driftwood=None, peaks=None):
        return ("bench_peers.py", "run", "--model", self.model, "--driftwood", driftwood or self.driftwood, "--peaks",
                peaks or self.peaks, "--threads", 1, *options)

    def test_what_the_refusals_below_are_changes_of(self):
        figures = self.folder / "figures.json"
        done = self.run_tool(*self.peers_run("--rounds", 1, "--repeat", 1, "--threads", 1, "--json", figures))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("median of 1 round of 1", done.stdout)
        self.assertIn("1 thread, round 1 of 1", done.stderr)
        result, = json.loads(figures.read_text())["results"]  # a number of threads given twice is measured once
        self.assertEqual((result["driftwood"]["prompt"], result["llama.cpp"]["prompt"]), (10.0, 8.0))

    def test_numbers(self):
        for option in ("--rounds", "--repeat", "--prompt", "--generate", "--threads"):
            for value in ("0", "-1", "x", "1.5", "9" * 30):
                self.refused(f"argument {option}: '{value}' is no number from 1", *self.peers_run(f"{option}={value}"))
        self.refused("'threads=0'", "bench_peers.py", "run", "--model", f"{self.model},threads=0")
        for option in ("--rounds", "--threads", "--jobs"):
            self.refused(f"argument {option}: '0' is no", "bench_peers_matrix.py", "--model", self.model, option, "0")
        self.refused("argument --jobs: '0' is no number", "bench_models.py", "--jobs", "0", "llama1b-q4_0")
        for setting in ("ROUNDS", "REPEAT"):
            with mock.patch.dict(os.environ, {setting: "0"}):
                done = subprocess.run([TOOLS / "bench_peers.sh", self.folder], capture_output=True, text=True, timeout=60)
            self.assertEqual((done.returncode, done.stderr), (2, f"bench_peers.sh: {setting}=0 is no number from 1 on\n"))

    def test_a_context_beyond_the_model_is_found_before_any_measuring(self):
        for option in ("prompt", "generate"):
            done = self.refused("the model allows 1 to 8192 tokens", *self.peers_run("--model",
                                                                                     f"{self.model},{option}=9999"))
            self.assertIn(f"{option}=9999", done.stderr)
            self.assertNotIn("round 1", done.stderr)

    def test_a_failing_program_shows_its_last_words(self):
        failing = self.script("failing", "i=0; while [ $i -lt 30 ]; do echo line $i >&2; i=$((i+1)); done; exit 3")
        done = self.refused("failed with exit code 3", *self.peers_run(driftwood=failing))
        self.assertIn("line 29", done.stderr)
        self.assertIn("bench --model", done.stderr)
        self.assertNotIn("line 19\n", done.stderr)
        self.refused("was ended by SIGKILL", *self.peers_run(driftwood=self.script("killed", "kill -9 $$")))

    def test_what_is_no_program(self):
        plain = self.folder / "plain"
        plain.write_text("no program")
        self.refused("no program at .", *self.peers_run(driftwood="."))
        self.refused("no program at /tmp", *self.peers_run(peaks="/tmp"))
        self.refused(f"{plain} is not executable", *self.peers_run(driftwood=plain))
        plain.chmod(0o755)
        self.refused(f"cannot run '{plain}': Exec format error", *self.peers_run(driftwood=plain))
        self.refused(f"cannot run '{plain}'", *self.peers_run(peaks=plain))
        self.refused("wrote no JSON", *self.peers_run(peaks=self.script("text", "echo hello")))
        self.refused("no number 'read_gb_per_s.1'", *self.peers_run(peaks=self.script("other", "echo '[]'")))

    def test_figures_that_cannot_be_written_are_found_before_any_measuring(self):
        for path in ("/no/such/x.json", self.folder):
            self.refused(f"{path}: ", *self.peers_run("--json", path))
            self.refused(f"{path}: ", "bench_peers_matrix.py", "--model", self.model, "--driftwood", self.driftwood,
                         "--json", path)
        self.assertFalse(pathlib.Path(self.driftwood + ".calls").exists())

    def test_an_unusable_cache_is_named(self):
        (self.folder / "file").touch()
        with mock.patch.dict(os.environ, {"XDG_CACHE_HOME": str(self.folder / "file")}):
            self.refused("Not a directory", "bench_peers.py", "build")
            self.refused("Not a directory", "bench_models.py", "llama1b-q4_0")

    def test_scripts_say_how_they_are_called(self):
        for name in ("bench_peers.sh", "bench.sh", "bench_snapshots.sh", "run_demo.sh", "run_tests.sh", "fixtures.sh"):
            done = subprocess.run([TOOLS / name], capture_output=True, text=True, timeout=60, cwd="/")
            self.assertEqual(done.returncode, 2)
            self.assertIn(f"usage: tools/{name} BUILD_FOLDER", done.stderr)


class Peer(Scratch):
    def build(self, cmake):
        """program() with `cmake` as CMake: its arguments hold -B FOLDER or --build FOLDER."""
        self.script("cmake", cmake)
        with mock.patch.dict(os.environ, {"PATH": f"{self.folder}:{os.environ['PATH']}"}):
            return peer_build.program(None, 1)

    def test_an_interrupted_unpacking_is_done_again(self):
        self.archive()
        left = self.peers / (cache_folder.SCRATCH + "left") / "llama_cpp_python-0.0.1" / "vendor" / "llama.cpp"
        left.mkdir(parents=True)
        (left / "CMakeLists.txt").touch()
        with cache_folder.locked(self.peers):
            self.assertEqual(peer_build.obtain(None), "0.0.1")
        self.assertEqual(sorted(p.name for p in self.peers.iterdir()),
                         [".lock", "llama_cpp_python-0.0.1.tar.gz", "source-0.0.1"])
        self.assertTrue((self.peers / "source-0.0.1" / "tools" / "llama-bench" / "CMakeLists.txt").is_file())

    def test_a_damaged_archive_is_removed_and_fetched_again(self):
        path = self.archive()
        whole = path.read_bytes()

        def fetch(version):
            self.assertFalse(path.exists())
            return str(self.archive(version))

        for damage in (whole[: len(whole) // 2], b"", b"no archive"):
            path.write_bytes(damage)
            with (cache_folder.locked(self.peers), mock.patch("peer_build.note") as note,
                  mock.patch("peer_build.download", side_effect=fetch) as fetched):
                self.assertEqual(peer_build.obtain(None), "0.0.1")
            self.assertIn(f"{path} is damaged", note.call_args[0][0])
            fetched.assert_called_once_with("0.0.1")
            (self.peers / "source-0.0.1").rename(self.folder / f"unpacked-{len(damage)}")

    def test_a_package_damaged_twice_ends_it(self):
        path = self.archive()
        path.write_bytes(b"")
        with (cache_folder.locked(self.peers), mock.patch("peer_build.note"),
              mock.patch("peer_build.download", side_effect=lambda version: (path.write_bytes(b"x"), str(path))[1]),
              self.assertRaisesRegex(SystemExit, "damaged again")):
            peer_build.obtain(None)
        self.assertFalse(path.exists())

    def test_the_newest_package_of_the_cache_is_taken_by_version(self):
        for version in ("0.3.10", "0.3.9"):
            self.archive(version)
        self.assertEqual(peer_build.version_of(peer_build.newest_archive(None)), "0.3.10")
        self.assertEqual(peer_build.version_of(peer_build.newest_archive("0.3.9")), "0.3.9")
        self.assertIsNone(peer_build.newest_archive("0.3"))

    def test_interrupted_steps_of_the_build_are_done_again(self):
        self.archive()
        log = self.folder / "log"
        configure = f'if [ "$1" = -G ]; then echo configure >>{log}; mkdir -p "$6"; touch "$6/half-done"'
        binary = 'mkdir -p "$2/bin"; echo >"$2/bin/llama-bench"'
        into = pathlib.Path(peer_build.build_folder("0.0.1"))
        with mock.patch("peer_build.note"), mock.patch("shutil.which", return_value=None):
            with self.assertRaises(SystemExit):
                self.build(f"{configure}; exit 1; fi")
            (into / "old").touch()
            with self.assertRaises(SystemExit):  # half a program is there
                self.build(f"{configure}; exit 0; fi; echo build >>{log}; {binary}; exit 1")
            self.assertFalse((into / "old").exists())
            self.assertTrue((into / "bin" / "llama-bench").exists())
            whole = f"{configure}; exit 0; fi; echo build >>{log}; {binary}"
            self.assertEqual(self.build(whole), str(into / "bin" / "llama-bench"))
            self.build(whole)
        self.assertEqual(log.read_text().split(), ["configure", "configure", "build", "build"])

    def test_the_build_is_keyed_by_what_goes_into_it(self):
        keys = {peer_build.build_folder("0.0.1"), peer_build.build_folder("0.0.2")}
        with mock.patch("peer_build.cpu_features", return_value="another"):
            keys.add(peer_build.build_folder("0.0.1"))
        with mock.patch("peer_build.CMAKE_OPTIONS", ["-DX=1"]):
            keys.add(peer_build.build_folder("0.0.1"))
        for name, value in (("CXX", self.script("compiler", "echo another")), ("CXXFLAGS", "-g")):
            with mock.patch.dict(os.environ, {name: value}):
                keys.add(peer_build.build_folder("0.0.1"))
        self.assertEqual(len(keys), 6)
        self.assertIn(peer_build.build_folder("0.0.1"), keys)


if __name__ == "__main__":
    unittest.main()
