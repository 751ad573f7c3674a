"""The cases of the unmodified Python packages of E2B against a daemon of Agentbox."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import io
import json
import os
import sys
import time
import traceback
import urllib.error
import urllib.parse
import urllib.request

import e2b
from e2b import AsyncSandbox, Sandbox
from e2b_code_interpreter import Sandbox as Interpreter
from e2b_code_interpreter import charts

if os.environ.get("E2B_CODEC") == "proto":  # the pinned package has both codecs and chooses JSON
    import e2b_connect.client

    e2b_connect.client.JSONCodec = e2b_connect.client.ProtobufCodec

PINNED = os.environ.get("E2B_SUITE") == "pinned"  # its run_code asks a name of E2B's, whatever the sandbox URL is
cases: list = []


def case(f):
    cases.append(f)
    return f


def same(got, want):
    assert got == want, f"got {got!r}, want {want!r}"


def raises(kind, f):
    try:
        f()
    except kind as e:
        return e
    raise AssertionError(f"want {kind}")


def shared() -> Sandbox:
    if not hasattr(shared, "box"):
        shared.box = Sandbox.create(timeout=300, metadata={"suite": "python", "agentbox.policy": "permissive"}, envs={"COLOUR": "blue"})
    return shared.box


def coder() -> Interpreter:
    if not hasattr(coder, "box"):
        coder.box = Interpreter.create(timeout=300)
    return coder.box


def approve():
    """Answers the question that waits, as the person does whom policy asks about a shell that gets input."""
    base, key = os.environ["E2B_API_URL"].removesuffix("/e2b"), bytes.fromhex(os.environ["E2B_API_KEY"].removeprefix("e2b_")).decode()

    def ask(method, path, body=None):
        r = urllib.request.Request(base + path, method=method, data=json.dumps(body).encode() if body else None)
        r.add_header("Authorization", "Bearer " + key)
        r.add_header("Content-Type", "application/json")
        return json.load(urllib.request.urlopen(r))

    for _ in range(100):
        for a in ask("GET", "/v1/approvals?status=pending")["approvals"]:
            return ask("POST", f"/v1/approvals/{a.get('approval_id') or a['id']}/decide", {"decision": "approve"})
        time.sleep(0.1)
    raise AssertionError("no question waits")


# The control plane.


@case
def a_wrong_key_is_an_authentication_error():
    raises(e2b.AuthenticationException, lambda: Sandbox.create(api_key="e2b_" + "00" * 8))


@case
def the_key_in_hexadecimal_digits_is_the_key():
    assert os.environ["E2B_API_KEY"].startswith("e2b_")
    assert shared().sandbox_id


@case
def a_sandbox_runs_and_is_killed():
    box = Sandbox.create(timeout=60)
    assert box.is_running()
    same(box.kill(), True)
    same(box.is_running(), False)
    same(Sandbox.kill(box.sandbox_id), False)


@case
def a_denied_command_ends_with_126_and_says_why():
    e = raises(e2b.CommandExitException, lambda: shared().commands.run("sudo true"))
    same(e.exit_code, 126)
    assert "sudo" in e.stderr, e.stderr
    handle = shared().commands.run("sudo true", background=True)
    same(raises(e2b.CommandExitException, handle.wait).exit_code, 126)


@case
def a_sandbox_brings_rules_of_its_own():
    rules = {"agentbox.policy": "permissive", "agentbox.policy_overrides": '{"ask":{"commands":["chown"]}}'}
    box = Sandbox.create(timeout=60, metadata=rules)
    box.files.write("run.sh", "#!/bin/sh\necho ran\n")
    same(box.commands.run("chmod 0755 /home/user/run.sh && ./run.sh").stdout, "ran\n")
    box.kill()
    raises(e2b.SandboxException, lambda: Sandbox.create(metadata={"agentbox.policy_overrides": "[]"}))


@case
def what_is_asked_of_an_ended_sandbox_fails():
    box = Sandbox.create(timeout=60)
    box.kill()
    raises(e2b.SandboxException, lambda: box.commands.run("true"))
    raises(Exception, lambda: box.files.read("x"))
    raises(e2b.NotFoundException, lambda: Sandbox.connect(box.sandbox_id))
    raises(e2b.NotFoundException, box.get_info)


@case
def the_info_has_metadata_and_times():
    info = shared().get_info()
    same(info.sandbox_id, shared().sandbox_id)
    same(info.metadata["suite"], "python")
    same(info.template_id, "base")
    left = (info.end_at - info.started_at).total_seconds()
    assert 290 <= left <= 310, left


@case
def the_timeout_is_set_anew():
    before = shared().get_info().end_at
    shared().set_timeout(900)
    assert shared().get_info().end_at > before


@case
def connecting_finds_the_same_sandbox():
    box = Sandbox.connect(shared().sandbox_id)
    box.files.write("connected.txt", "x")
    same(shared().files.read("connected.txt"), "x")


@case
def the_list_finds_sandboxes_by_metadata():
    found = Sandbox.list(query=e2b.SandboxQuery(metadata={"suite": "python"})).next_items()
    assert shared().sandbox_id in [s.sandbox_id for s in found]
    same(Sandbox.list(query=e2b.SandboxQuery(metadata={"suite": "a b&c"})).next_items(), [])


@case
def the_list_has_pages():
    shared()
    coder()
    pages, seen = Sandbox.list(limit=1), []
    while pages.has_next:
        items = pages.next_items()
        assert len(items) <= 1
        seen += [s.sandbox_id for s in items]
    assert {shared().sandbox_id, coder().sandbox_id} <= set(seen), seen
    same(len(seen), len(set(seen)))


@case
def metrics_have_the_limits():
    shared().commands.run("true")
    m = shared().get_metrics()[0]
    assert m.mem_total >= 1 << 20 and m.cpu_count >= 1


@case
def an_unknown_template_is_refused():
    raises(e2b.SandboxException, lambda: Sandbox.create(template="no-such-template"))


@case
def network_rules_are_refused_at_once():
    began = time.monotonic()
    raises(e2b.SandboxException, lambda: Sandbox.create(network={"allow_out": ["1.1.1.1"]}))
    assert time.monotonic() - began < 5


@case
def a_paused_sandbox_goes_on_where_it_was():
    box = Sandbox.create(timeout=60, metadata={"agentbox.policy": "permissive"})
    ticks = box.commands.run("while :; do date +%N >> n; sleep 0.02; done", background=True, timeout=0)
    while not box.files.exists("n"):
        time.sleep(0.02)
    (box.beta_pause if hasattr(box, "beta_pause") else box.pause)()
    before = box.files.read("n")
    time.sleep(0.2)
    same(box.files.read("n"), before)
    same(str(getattr(box.get_info().state, "value", box.get_info().state)), "paused")
    assert not box.is_running()
    box = Sandbox.connect(box.sandbox_id, timeout=60)
    while box.files.read("n") == before:
        time.sleep(0.02)
    ticks.kill()
    box.kill()


@case
def a_sandbox_with_auto_resume_goes_on_with_a_command():
    if PINNED:
        return  # its create has no such option
    box = Sandbox.create(timeout=60, lifecycle={"on_timeout": "pause", "auto_resume": True})
    box.pause()
    same(box.commands.run("echo here").stdout, "here\n")
    box.kill()


@case
def a_snapshot_outlives_its_sandbox():
    box = Sandbox.create(timeout=60, metadata={"suite": "snapshot"})
    box.files.write("kept.txt", "kept")
    made = box.create_snapshot()
    box.kill()
    again = Sandbox.create(template=made.snapshot_id, timeout=60)
    same(again.files.read("kept.txt"), "kept")
    again.kill()
    assert made.snapshot_id in [s.snapshot_id for s in Sandbox.list_snapshots().next_items()]
    assert made.snapshot_id not in [s.sandbox_id for s in Sandbox.list().next_items()]
    Sandbox.delete_snapshot(made.snapshot_id)
    assert made.snapshot_id not in [s.snapshot_id for s in Sandbox.list_snapshots().next_items()]


@case
def a_sandbox_is_forked():
    if PINNED:
        assert not hasattr(Sandbox, "fork")
        return
    box = Sandbox.create(timeout=60)
    box.files.write("a", "1")
    forks = box.fork(count=2) if "count" in Sandbox.fork.__code__.co_varnames else box.fork()
    for f in forks:
        f = getattr(f, "sandbox", f)
        same(f.files.read("a"), "1")
        f.kill()
    box.kill()


# Files.


@case
def a_file_is_written_and_read():
    entry = shared().files.write("hello.txt", "grüße 🌍")
    same(entry.path, "/home/user/hello.txt")
    same(shared().files.read("/home/user/hello.txt"), "grüße 🌍")
    same(shared().files.read("/workspace/hello.txt"), "grüße 🌍")


@case
def bytes_are_bytes():
    raw = bytes(range(256)) * 300
    shared().files.write("raw.bin", raw)
    same(bytes(shared().files.read("raw.bin", format="bytes")), raw)
    same(b"".join(shared().files.read("raw.bin", format="stream")), raw)


@case
def a_file_object_is_uploaded():
    shared().files.write("object.bin", io.BytesIO(b"x" * 100_000))
    same(len(shared().files.read("object.bin", format="bytes")), 100_000)


@case
def many_files_are_written_at_once():
    made = shared().files.write_files([{"path": f"many/{i}/f.txt", "data": str(i)} for i in range(5)])
    same([m.path for m in made], [f"/home/user/many/{i}/f.txt" for i in range(5)])
    same(shared().files.read("many/4/f.txt"), "4")


@case
def the_empty_file():
    shared().files.write("empty", "")
    same(shared().files.read("empty"), "")


@case
def a_name_with_spaces_and_signs():
    shared().files.write("a folder/ü & + ?#.txt", "x")
    same(shared().files.read("a folder/ü & + ?#.txt"), "x")
    assert shared().files.exists("a folder/ü & + ?#.txt")


@case
def a_missing_file_is_not_found():
    raises(e2b.NotFoundException, lambda: shared().files.read("missing"))
    raises(e2b.NotFoundException, lambda: shared().files.get_info("missing"))
    raises(e2b.NotFoundException, lambda: shared().files.list("missing"))
    same(shared().files.exists("missing/deeper"), False)


def told(handle, *wanted):
    """Asks for new events until the wanted ones have come, and returns all."""
    seen: list = []
    for _ in range(100):
        seen += [(e.type.value, e.name) for e in handle.get_new_events()]
        if set(wanted) <= set(seen):
            return seen
        time.sleep(0.05)
    raise AssertionError(f"got {seen}, want {wanted}")


@case
def a_folder_is_watched():
    box = shared()
    box.files.make_dir("watched/deep")
    box.files.write("watched/old.txt", "old")
    handle = box.files.watch_dir("watched")
    box.files.write("watched/new.txt", "new")
    told(handle, ("create", "new.txt"), ("write", "new.txt"))
    box.files.write("watched/old.txt", "changed")
    same(told(handle, ("write", "old.txt")), [("write", "old.txt")])
    box.files.rename("watched/new.txt", "watched/other.txt")
    told(handle, ("rename", "new.txt"), ("create", "other.txt"))
    box.files.write("watched/deep/f.txt", "not told")
    box.files.remove("watched/other.txt")
    seen = told(handle, ("remove", "other.txt"))
    assert not any("f.txt" in name for _, name in seen), seen
    handle.stop()
    raises(e2b.SandboxException, handle.get_new_events)


@case
def a_folder_is_watched_recursively():
    box = shared()
    box.files.make_dir("tree-watched/a")
    handle = box.files.watch_dir("tree-watched", recursive=True)
    box.commands.run("mkdir -p /workspace/tree-watched/a/b && echo x > /workspace/tree-watched/a/b/c.txt")
    told(handle, ("create", "a/b"), ("create", "a/b/c.txt"))
    handle.stop()


@case
def a_folder_that_is_not_there_is_not_watched():
    raises(e2b.NotFoundException, lambda: shared().files.watch_dir("no/such/folder"))
    raises(e2b.SandboxException, lambda: shared().files.watch_dir("/etc"))


@case
def withheld_files_are_not_told():
    box = Sandbox.create(timeout=60)
    handle = box.files.watch_dir("/home/user", recursive=True)
    box.files.write(".env", "SECRET=1")
    box.files.write("seen.txt", "x")
    box.files.write("last.txt", "x")
    seen = told(handle, ("create", "last.txt"))
    assert ("create", "seen.txt") in seen and not any(".env" in name for _, name in seen), seen
    box.kill()


@case
def the_asynchronous_package_watches():
    async def watch():
        box = await AsyncSandbox.create(timeout=60)
        seen, ended = asyncio.Queue(), asyncio.Event()
        handle = await box.files.watch_dir(".", on_event=lambda e: seen.put_nowait((e.type.value, e.name)),
                                           on_exit=lambda _: ended.set())
        await box.files.write("a.txt", "x")
        same(await asyncio.wait_for(seen.get(), 10), ("create", "a.txt"))
        await handle.stop()
        await box.kill()

    asyncio.run(watch())


@case
def a_listing_has_depths():
    shared().files.write("tree/a/b/c.txt", "x")
    same([e.name for e in shared().files.list("tree")], ["a"])
    same(sorted(e.path for e in shared().files.list("tree", depth=2)), ["/home/user/tree/a", "/home/user/tree/a/b"])


@case
def the_info_of_a_file():
    shared().files.write("told.txt", "12345")
    info = shared().files.get_info("told.txt")
    same((info.name, info.size, info.path, info.permissions), ("told.txt", 5, "/home/user/told.txt", "-rw-r--r--"))
    same(shared().files.get_info("tree" if shared().files.exists("tree") else ".").type.value, "dir")


@case
def a_folder_is_made_once():
    same(shared().files.make_dir("made/deep"), True)
    same(shared().files.make_dir("made/deep"), False)


@case
def a_file_is_renamed_and_removed():
    shared().files.write("old.txt", "x")
    same(shared().files.rename("old.txt", "moved/new.txt").path, "/home/user/moved/new.txt")
    same(shared().files.exists("old.txt"), False)
    shared().files.remove("moved/new.txt")
    shared().files.remove("moved")
    same(shared().files.exists("moved"), False)
    raises(e2b.NotFoundException, lambda: shared().files.rename("none", "some"))


@case
def a_path_that_leaves_the_files_does_not():
    raises(Exception, lambda: shared().files.read("../../etc/shadow"))


@case
def files_of_tmp_are_reached_by_commands():
    shared().files.write("/tmp/outside/a.bin", b"\x00\xff1")
    same(bytes(shared().files.read("/tmp/outside/a.bin", format="bytes")), b"\x00\xff1")
    same([e.name for e in shared().files.list("/tmp/outside")], ["a.bin"])
    same(shared().files.exists("/tmp/outside/b"), False)
    same(shared().files.get_info("/tmp/outside/a.bin").size, 3)
    shared().files.write("/tmp/directly.txt", "in a folder that every sandbox has")
    same(shared().files.read("/tmp/directly.txt"), "in a folder that every sandbox has")


@case
def signed_addresses_need_no_key():
    shared().files.write("signed file.txt", "signed")
    url = shared().download_url("signed file.txt")
    same(urllib.request.urlopen(url).read(), b"signed")
    timed = shared().download_url("signed file.txt", use_signature_expiration=30)
    same(urllib.request.urlopen(timed).read(), b"signed")
    broken = raises(urllib.error.HTTPError, lambda: urllib.request.urlopen(url[:-3] + "abc"))
    same(broken.code, 401)


# Commands.


@case
def a_command_has_its_output():
    r = shared().commands.run("echo out; echo err >&2")
    same((r.stdout, r.stderr, r.exit_code), ("out\n", "err\n", 0))


@case
def a_failing_command_raises():
    e = raises(e2b.CommandExitException, lambda: shared().commands.run("echo no >&2; exit 7"))
    same((e.exit_code, e.stderr), (7, "no\n"))


@case
def the_environment_of_a_command():
    same(shared().commands.run("echo $COLOUR $SHAPE", envs={"SHAPE": "round"}).stdout, "blue round\n")


@case
def the_folder_of_a_command():
    shared().files.write("place/x", "")
    same(shared().commands.run("ls", cwd="/home/user/place").stdout, "x\n")
    same(shared().commands.run("pwd", cwd="/").stdout, "/\n")


@case
def home_is_the_folder_of_the_files():
    shared().files.write("homely.txt", "here")
    same(shared().commands.run("cat /home/user/homely.txt").stdout, "here")
    shared().commands.run("echo made >/home/user/by-command.txt")
    same(shared().files.read("by-command.txt"), "made\n")


@case
def output_is_told_as_it_comes():
    said = []
    shared().commands.run("for i in 1 2 3; do echo $i; sleep 0.1; done", on_stdout=said.append)
    same("".join(said), "1\n2\n3\n")


@case
def characters_are_whole():
    same(shared().commands.run("printf 'ä€🌍%.0s' $(seq 500)").stdout, "ä€🌍" * 500)


@case
def a_long_command():
    same(shared().commands.run("echo " + "x" * 6000).stdout, "x" * 6000 + "\n")


@case
def a_command_that_takes_too_long_ends():
    began = time.monotonic()
    raises(e2b.TimeoutException, lambda: shared().commands.run("sleep 60", timeout=1))
    assert time.monotonic() - began < 8
    time.sleep(0.2)
    same([p for p in shared().commands.list() if "sleep 60" in " ".join(p.args)], [])


@case
def a_background_command_is_waited_for():
    handle = shared().commands.run("sleep 0.2; echo done", background=True)
    assert handle.pid > 0
    same(handle.wait().stdout, "done\n")


@case
def a_port_is_reached_by_its_host():
    box = Sandbox.create(timeout=60, metadata={"agentbox.policy": "permissive"})
    box.files.write("web/page.txt", "from the sandbox")
    served = box.commands.run("python3 -m http.server 8080 --directory web", background=True, timeout=0)
    daemon = urllib.parse.urlparse(os.environ["E2B_API_URL"]).netloc
    asked = urllib.request.Request(f"http://{daemon}/page.txt")  # the name below localhost is found by browsers, and by some hosts
    asked.add_header("Host", box.get_host(8080))
    asked.add_header("E2B-Traffic-Access-Token", box.traffic_access_token)
    for _ in range(100):
        try:
            same(urllib.request.urlopen(asked).read(), b"from the sandbox")
            break
        except urllib.error.HTTPError as e:
            same(e.code, 502)
            time.sleep(0.1)
    else:
        raise AssertionError("nothing listens")
    asked.add_header("E2B-Traffic-Access-Token", "agentbox_other")
    raises(urllib.error.HTTPError, lambda: urllib.request.urlopen(asked))
    served.kill()
    box.kill()


@case
def a_command_gets_input():
    handle = shared().commands.run("head -n 1", background=True, stdin=True)
    shared().commands.send_stdin(handle.pid, "typed\n")
    same(handle.wait().stdout, "typed\n")


@case
def commands_are_listed_connected_and_killed():
    handle = shared().commands.run("echo begun; sleep 100", background=True)
    assert handle.pid in [p.pid for p in shared().commands.list()]
    again = shared().commands.connect(handle.pid)
    same(shared().commands.kill(handle.pid), True)
    raises(e2b.CommandExitException, again.wait)
    same(shared().commands.kill(handle.pid), False)
    same(shared().commands.kill(4242), False)


@case
def commands_run_side_by_side():
    first = shared().commands.run("until test -e go; do sleep 0.05; done; echo gone", background=True)
    shared().commands.run("touch go")
    same(first.wait().stdout, "gone\n")


@case
def a_terminal():
    handle = shared().pty.create(e2b.PtySize(rows=24, cols=80), timeout=30)
    approve()
    shared().pty.resize(handle.pid, e2b.PtySize(rows=30, cols=100))
    shared().pty.send_stdin(handle.pid, b"stty size; echo se''en; exit 3\n")
    seen = []
    try:
        handle.wait(on_pty=lambda data: seen.append(bytes(data)))
    except e2b.CommandExitException as e:
        same(e.exit_code, 3)
    assert b"seen" in b"".join(seen) and b"30 100" in b"".join(seen), seen


@case
def a_terminal_is_killed():
    handle = shared().pty.create(e2b.PtySize(rows=24, cols=80), timeout=30)
    same(shared().pty.kill(handle.pid), True)


@case
def git_is_a_command():
    if hasattr(shared(), "git"):
        assert shared().git is not None
    same(shared().commands.run("true").exit_code, 0)


@case
def policy_denies_with_its_sentence():
    box = Sandbox.create(timeout=60, metadata={"agentbox.policy": "restrictive"})
    e = raises(e2b.SandboxException, lambda: box.commands.run("curl https://example.com", timeout=5))
    assert str(e), e
    box.kill()


@case
def the_asynchronous_package():
    async def work():
        box = await AsyncSandbox.create(timeout=60)
        await box.files.write("a", "1")
        same((await box.commands.run("cat a")).stdout, "1")
        same(await box.files.exists("b"), False)
        same(await box.kill(), True)

    asyncio.run(work())


# Code.


def code(f):
    """A case of run_code, which the pinned package sends to a host of E2B."""

    return f if PINNED else case(f)


@code
def the_value_of_the_last_line():
    e = coder().run_code("x = 20\nx + 22")
    same((e.text, e.error), ("42", None))
    same(e.results[0].is_main_result, True)


@code
def variables_stay():
    coder().run_code("kept = 'here'")
    same(coder().run_code("kept").text, "'here'")


@code
def prints_are_told_as_they_come():
    said = []
    e = coder().run_code("print('a')\nprint('ü€🌍')", on_stdout=lambda m: said.append(m.line))
    same("".join(said), "a\nü€🌍\n")
    same("".join(e.logs.stdout), "a\nü€🌍\n")


@code
def what_is_printed_as_an_error_is_no_error():
    e = coder().run_code("import sys; print('warned', file=sys.stderr)")
    same(("".join(e.logs.stderr), e.error), ("warned\n", None))


@code
def an_error_has_a_name_a_value_and_a_trace():
    e = coder().run_code("print('before')\nraise ValueError('no number')").error
    same((e.name, e.value), ("ValueError", "no number"))
    assert "Traceback" in e.traceback
    same(coder().run_code("1 +").error.name, "SyntaxError")


@code
def a_context_has_its_own_variables():
    context = coder().create_code_context(language="python")
    coder().run_code("only = 1", context=context)
    same(coder().run_code("only", context=context).text, "1")
    same(coder().run_code("only").error.name, "NameError")
    assert context.id in [c.id for c in coder().list_code_contexts()]
    coder().restart_code_context(context)
    same(coder().run_code("only", context=context).error.name, "NameError")
    coder().remove_code_context(context)
    assert context.id not in [c.id for c in coder().list_code_contexts()]


@code
def javascript_and_typescript():
    same(coder().run_code("6 * 7", language="javascript").text, "42")
    same(coder().run_code("const n: number = 5\nn + 1", language="typescript").text, "6")


@code
def an_unknown_language_is_refused():
    raises(Exception, lambda: coder().run_code("1", language="cobol"))


@code
def an_html_form_is_a_result():
    e = coder().run_code("class T:\n    def _repr_html_(self): return '<b>ü</b>'\nT()")
    same(e.results[0].html, "<b>ü</b>")


@code
def executions_are_counted():
    first = coder().run_code("1").execution_count
    same(coder().run_code("2").execution_count, first + 1)


@code
def variables_of_the_environment():
    same(coder().run_code("import os; os.environ['WORD']", envs={"WORD": "said"}).text, "'said'")


@code
def lines_with_an_exclamation_mark_are_commands():
    e = coder().run_code("!echo from a command; exit 3\n\nx = 6\nx * 7")
    same((e.text, e.error), ("42", None))
    assert "".join(e.logs.stdout).startswith("from a command\n"), e.logs.stdout
    e = coder().run_code("!sudo true\nprint('goes on')")  # policy denies it
    same((e.error, "".join(e.logs.stdout)), (None, "goes on\n"))
    assert "the command was not run" in "".join(e.logs.stderr), e.logs.stderr
    assert coder().run_code("!echo alone").execution_count == e.execution_count + 1


@code
def files_and_code_share_the_folder():
    coder().files.write("shared.txt", "from outside")
    same(coder().run_code("open('/home/user/shared.txt').read()").text, "'from outside'")
    coder().run_code("open('inside.txt', 'w').write('x')")
    same(coder().files.read("inside.txt"), "x")


@code
def code_that_takes_too_long():
    coder().run_code("before = 'kept'")
    raises(e2b.TimeoutException, lambda: coder().run_code("while True: pass", timeout=1))
    same(coder().run_code("before").text, "'kept'")


@code
def a_context_has_a_folder():
    coder().files.make_dir("deeper")
    context = coder().create_code_context(cwd="/home/user/deeper")
    same(coder().run_code("import os; os.getcwd()", context=context).text, "'/workspace/deeper'")


@code
def numpy_and_a_frame_of_pandas():
    same(coder().run_code("import numpy as np\nint(np.arange(5).sum())").text, "10")
    r = coder().run_code("import pandas as pd\npd.DataFrame({'a': [1, 2]})").results[0]
    assert "<table" in r.html and "a" in r.text, r


@code
def all_forms_of_a_value():
    r = coder().run_code("""class T:
    def _repr_svg_(self): return '<svg/>'
    def _repr_markdown_(self): return '# T'
    def _repr_latex_(self): return '$x$'
    def _repr_json_(self): return {'a': [1]}
display(T())""").results[0]
    same((r.svg, r.markdown, r.latex, r.json, r.is_main_result), ("<svg/>", "# T", "$x$", {"a": [1]}, False))


def drawn(code: str):
    e = coder().run_code("import matplotlib.pyplot as plt\n" + code + "\nplt.show()")
    assert e.error is None, e.error
    assert base64.b64decode(e.results[0].png).startswith(b"\x89PNG")
    return e.results[0].chart


@code
def a_chart_of_lines():
    c = drawn("plt.plot([1, 2, 3], [2, 4, 8], label='growth'); plt.title('T'); plt.xlabel('Time (s)')")
    assert isinstance(c, charts.LineChart)
    same((c.title, c.x_label, c.x_unit, c.x_scale), ("T", "Time (s)", "s", charts.ScaleType.LINEAR))
    same([(e.label, e.points) for e in c.elements], [("growth", [(1, 2), (2, 4), (3, 8)])])


@code
def a_chart_of_points():
    c = drawn("plt.scatter([1, 2], [3, 4], label='dots')")
    assert isinstance(c, charts.ScatterChart)
    same([(e.label, e.points) for e in c.elements], [("dots", [(1, 3), (2, 4)])])


@code
def a_chart_of_bars():
    c = drawn("plt.bar(['a', 'b'], [3, 5], label='sold')")
    assert isinstance(c, charts.BarChart)
    same([(e.label, e.group, float(e.value)) for e in c.elements], [("a", "sold", 3.0), ("b", "sold", 5.0)])


@code
def a_chart_of_slices():
    c = drawn("plt.pie([1, 3], labels=['x', 'y'])")
    assert isinstance(c, charts.PieChart)
    same([(e.label, e.angle, e.radius) for e in c.elements], [("x", 90, 1), ("y", 270, 1)])


@code
def a_chart_of_boxes_and_one_of_charts():
    c = drawn("plt.boxplot([1, 2, 3, 4, 20])")
    assert isinstance(c, charts.BoxAndWhiskerChart)
    same([(e.min, e.median, e.max, e.outliers) for e in c.elements], [(1, 3, 4, [20])])
    c = drawn("f, (a, b) = plt.subplots(1, 2)\na.plot([1, 2])\nb.bar(['q'], [1])")
    assert isinstance(c, charts.SuperChart)
    same([type(e) for e in c.elements], [charts.LineChart, charts.BarChart])


@code
def nano_has_contexts_too():
    with Interpreter.create(timeout=60, metadata={"agentbox.runtime": "nano"}) as box:
        box.run_code("x = 20")
        same(box.run_code("x + 22").text, "42")


# More about files and commands.


@case
def a_file_is_there_or_not():
    box = shared()
    box.files.write("there.txt", "x")
    same((box.files.exists("there.txt"), box.files.exists("not-there.txt"), box.files.exists("/home/user")), (True, False, True))


@case
def a_file_is_replaced_whole():
    box = shared()
    box.files.write("replaced.txt", "a long first text")
    info = box.files.write("replaced.txt", "short")
    same((info.name, info.path, box.files.read("replaced.txt")), ("replaced.txt", "/home/user/replaced.txt", "short"))


@case
def a_file_is_read_as_text_bytes_and_stream():
    box = shared()
    box.files.write("forms.txt", "ü€🌍")
    raw = "ü€🌍".encode()
    same(box.files.read("forms.txt", format="text"), "ü€🌍")
    same(bytes(box.files.read("forms.txt", format="bytes")), raw)
    same(b"".join(box.files.read("forms.txt", format="stream")), raw)


@case
def a_large_file_stays_whole():
    box, raw = shared(), os.urandom(6 << 20)
    box.files.write("large.bin", raw)
    assert bytes(box.files.read("large.bin", format="bytes")) == raw
    same(box.commands.run("sha256sum large.bin").stdout.split()[0], hashlib.sha256(raw).hexdigest())


@case
def a_folder_is_removed_with_its_files():
    box = shared()
    box.files.write("gone/a/b.txt", "x")
    box.files.remove("gone")
    same(box.files.exists("gone/a/b.txt"), False)
    raises(e2b.NotFoundException, lambda: box.files.list("gone"))


@case
def sandboxes_do_not_share_files():
    shared().files.write("mine.txt", "x")
    with Sandbox.create(timeout=60) as other:
        same(other.files.exists("mine.txt"), False)


@case
def errors_and_output_are_two_streams():
    out, err = [], []
    r = shared().commands.run("echo out; echo err >&2", on_stdout=out.append, on_stderr=err.append)
    same((r.stdout, r.stderr, "".join(out), "".join(err)), ("out\n", "err\n", "out\n", "err\n"))


@case
def quotes_lines_and_signs_of_a_command():
    same(shared().commands.run("printf '%s|' \"a b\" 'c\"d' $'e\\nf' \"ü\"\ncat <<'END'\n$HOME `x`\nEND").stdout, "a b|c\"d|e\nf|ü|$HOME `x`\n")


@case
def long_output_is_whole():
    out = shared().commands.run("seq 1 100000").stdout
    same((len(out), out[-7:]), (588895, "100000\n"))


@case
def an_exit_code_is_told():
    for code in (1, 2, 126, 255):
        same(raises(e2b.CommandExitException, lambda: shared().commands.run(f"exit {code}")).exit_code, code)


@case
def a_command_that_is_not_there():
    e = raises(e2b.CommandExitException, lambda: shared().commands.run("no-such-program-here"))
    same(e.exit_code, 127)
    assert "no-such-program-here" in e.stderr, e


@case
def an_unknown_sandbox_is_not_killed():
    same(Sandbox.kill("spc_01M0000000000000000000000"), False)


def main() -> int:
    chosen = sys.argv[1:]
    failed = ran = 0
    for f in cases:
        if chosen and f.__name__ not in chosen:
            continue
        ran += 1
        began = time.monotonic()
        try:
            f()
        except BaseException:
            failed += 1
            print(f"FAIL {f.__name__}", flush=True)
            traceback.print_exc(limit=-4)
        if (took := time.monotonic() - began) > 5:
            print(f"slow {f.__name__}: {took:.1f} s", flush=True)
    for box in (getattr(shared, "box", None), getattr(coder, "box", None)):
        if box:
            box.kill()
    print(json.dumps({"e2b": e2b.__version__ if hasattr(e2b, "__version__") else "", "cases": ran, "failed": failed}))
    return 1 if failed else 0


sys.exit(main())
