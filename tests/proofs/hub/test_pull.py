"""``dflash-chat pull`` as a process, through the real client, from a hub on this machine."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import sys

import pytest

from dflash_tui.core.exit_codes import ExitCode
from engine.hub.pairs import BUNDLED_PAIR
from tests.hub.conftest import DRAFTER, NOT_WANTED, SHARDS, TARGET, Computer, ended, repo_of, run_program, target_repo
from tests.hub.server import FakeHub, Repo, Trouble
from tests.proofs.e2e.chatting import UNTIMED

SLOW = 400_000.0


def assert_whole(computer: Computer, hub: FakeHub) -> None:
    """Both models are in the cache, byte for byte, and nothing else is."""
    for name in (TARGET, DRAFTER):
        wanted = {file: content for file, content in hub.repos[name].files.items() if file not in NOT_WANTED}
        folder = computer.snapshot(name)
        assert {path.name: path.read_bytes() for path in folder.iterdir()} == wanted
    assert computer.partial_bytes() == 0


def refused(result: subprocess.CompletedProcess[str], *parts: str) -> None:
    """A message and the next step, no traceback, and the exit code for weights."""
    assert result.returncode == ExitCode.WEIGHTS
    assert "\ndflash-chat: " in f"\n{result.stderr}" and "Traceback" not in result.stderr
    assert [part for part in parts if part not in result.stderr] == [], result.stderr


def test_a_pair_is_fetched_whole_and_only_once(computer: Computer, hub: FakeHub) -> None:
    first = computer.run("pull", TARGET)
    assert (first.returncode, first.stdout.split()) == (0, [str(computer.snapshot(n)) for n in (TARGET, DRAFTER)])
    assert_whole(computer, hub)
    num_bytes = sum(len(content) for name in (TARGET, DRAFTER) for content in hub.repos[name].files.values())
    num_bytes -= sum(map(len, NOT_WANTED.values()))
    assert f"{num_bytes / 1e6:.0f} of {num_bytes / 1e6:.0f} MB" in first.stderr
    hub.forget_requests()
    assert computer.run("pull", TARGET).returncode == 0
    assert hub.sent == []
    code = f"import huggingface_hub as h; print(h.snapshot_download({TARGET!r}, allow_patterns=['*.json', 'model*']))"
    environment = {"HF_HOME": str(computer.home), "HF_ENDPOINT": hub.endpoint, "HF_HUB_OFFLINE": "1", "PATH": ""}
    found = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert found.stdout.strip() == str(computer.snapshot(TARGET)), "the cache is everybody's"


def test_a_new_revision_fetches_what_changed(computer: Computer, hub: FakeHub) -> None:
    computer.run("pull", TARGET)
    old, hub.repos[TARGET] = hub.repos[TARGET], target_repo()
    hub.repos[TARGET] = Repo(old.files | {SHARDS[1]: b"new" * 100_000})
    hub.forget_requests()
    assert computer.run("pull", TARGET).returncode == 0
    assert_whole(computer, hub)
    assert {sent.name for sent in hub.sent} == {SHARDS[1]}


def test_a_token_opens_gated_models_once_terms_are_accepted_and_stays_with_the_hub(
    computer: Computer, hub: FakeHub
) -> None:
    """Content comes from another host, which must not learn it. It was saved by signing in."""
    hub.repos[TARGET].gated = True
    hub.tokens["secret"] = "ada"
    computer.home.mkdir()
    (computer.home / "token").write_text("secret")
    refused(
        computer.run("pull", TARGET), "needs a licence click (HTTP 403, you are signed in as ada)", "accept the terms"
    )
    hub.accepted.add("ada")
    assert computer.run("pull", TARGET).returncode == 0
    assert_whole(computer, hub)
    assert hub.sent and not any(sent.authorized for sent in hub.sent)


# --- what breaks on the way


def test_a_cut_connection_is_resumed_where_it_broke_and_a_busy_server_asked_again(
    computer: Computer, hub: FakeHub
) -> None:
    hub.troubles[SHARDS[0]] = Trouble(cut_after=[700_000, 300_000])
    hub.troubles[SHARDS[1]] = Trouble(statuses=[503, 429])
    assert computer.run("pull", TARGET).returncode == 0
    assert_whole(computer, hub)
    starts = [(sent.start, sent.num_bytes) for sent in hub.sent_of(SHARDS[0])]
    assert starts == [(0, 700_000), (700_000, 300_000), (1_000_000, 1_000_000)]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupted_pull_goes_on_where_it_stopped(number: signal.Signals, computer: Computer, hub: FakeHub) -> None:
    hub.troubles[SHARDS[0]] = Trouble(bytes_per_second=SLOW)
    content = hub.repos[TARGET].files[SHARDS[0]]
    code, errors = computer.interrupted(lambda: computer.partial_bytes(content) > 200_000, number, "pull", TARGET)
    if number is signal.SIGINT:
        assert code == ExitCode.INTERRUPTED
        assert re.search(r"Stopped at \d of \d MB\. Nothing was deleted; run it again", errors)
    have = computer.partial_bytes(content)
    assert have > 200_000
    hub.troubles.clear()
    assert computer.run("pull", TARGET).returncode == 0
    assert_whole(computer, hub)
    # The server may learn late that the first program hung up, so its two requests may stand in any order.
    assert sorted((sent.start, sent.num_bytes) for sent in hub.sent_of(SHARDS[0]))[1:] == [(have, 2_000_000 - have)]


def test_damaged_content_is_noticed_and_thrown_away(computer: Computer, hub: FakeHub) -> None:
    hub.troubles[SHARDS[1]] = Trouble(damages=True)
    refused(computer.run("pull", TARGET), SHARDS[1], "checksum", "Run the same command again")
    hub.troubles.clear()
    assert computer.run("pull", TARGET).returncode == 0
    assert_whole(computer, hub)


def test_two_pulls_at_once(computer: Computer, hub: FakeHub) -> None:
    trouble = hub.troubles[SHARDS[0]] = Trouble(bytes_per_second=SLOW / 20)
    first = computer.start("pull", TARGET)
    while computer.partial_bytes(hub.repos[TARGET].files[SHARDS[0]]) < 1_000:
        assert first.poll() is None
    refused(computer.run("pull", TARGET), "Another program is fetching")
    trouble.bytes_per_second = None
    assert ended(first).returncode == 0
    assert_whole(computer, hub)


# --- what the hub refuses


def test_a_gated_model_without_signing_in(computer: Computer, hub: FakeHub) -> None:
    hub.repos[TARGET].gated = True
    steps = [
        f"1. open {hub.endpoint}/{TARGET} and accept the terms",
        "2. hf auth login",
        f"3. dflash-chat pull {TARGET}     what was fetched is kept",
        "Already have the weights? dflash-chat /path/to/model     No GPU? dflash-chat alone runs the bundled pair",
    ]
    refused(computer.run("pull", TARGET), "HTTP 401, you are not signed in", *steps)
    assert hub.sent == []


@pytest.mark.parametrize(("token", "hint"), [(None, "hf auth login"), ("secret", "another account")])
def test_no_such_model(token: str | None, hint: str, computer: Computer, hub: FakeHub) -> None:
    hub.tokens["secret"] = "ada"
    computer.environment |= {"HF_TOKEN": token} if token else {}
    refused(computer.run("pull", "google/gemma-5"), "The hub has no model google/gemma-5", "Check the spelling", hint)


# --- something else answers

PAGE = b"<html>Sign in to this network</html>"


@pytest.mark.parametrize(
    ("where", "said", "parts"),
    [
        *((each, (200, {}, PAGE), ("is not the hub", "sign in first")) for each in ("api", "google", "content")),
        ("api", (200, {}, b"{}"), ("is not the hub",)),
        ("google", (302, {"Location": "http://[::1"}, b""), ("an address that is none",)),
        ("google", (404, {}, PAGE), ("answered 404", "HF_ENDPOINT")),
        ("google", (407, {}, b""), ("answered 407", "a name and a password")),
        ("content", (204, {}, b""), ("is not the hub",)),
        *((each, (429, {"Retry-After": "3600"}, b""), ("asks for 3600 seconds",)) for each in ("google", "content")),
        ("google", (429, {"RateLimit": '"resolvers";r=0;t=299'}, b""), ("asks for 299 seconds",)),
    ],
)
def test_what_answers_in_the_hubs_place(
    where: str, said: tuple[int, dict[str, str], bytes], parts: tuple[str, ...], computer: Computer, hub: FakeHub
) -> None:
    """No login page is taken for weights, again and again, and nobody waits an hour in silence."""
    hub.instead[where] = said
    refused(computer.run("pull", TARGET), *parts)
    assert computer.partial_bytes() == 0


# --- no network


def test_no_network(computer: Computer, hub: FakeHub) -> None:
    hub.close()
    refused(computer.run("pull", TARGET), "The hub can't be reached", "Check the network")


def test_offline_a_model_that_is_not_here_is_missing(computer: Computer, hub: FakeHub) -> None:
    refused(computer.run("-p", "hi", "--offline", TARGET), f"{TARGET} is not on this machine", "dflash-chat pull")
    computer.environment["HF_HUB_OFFLINE"] = "1"
    refused(computer.run("pull", TARGET), f"{TARGET} is not on this machine", "HF_HUB_OFFLINE")
    assert hub.num_requests == 0


# --- disks


def test_too_little_room_is_known_before_the_first_byte(computer: Computer, hub: FakeHub) -> None:
    hub.repos[TARGET] = Repo(hub.repos[TARGET].files)
    refused(
        computer.run("pull", TARGET, runs=on_a_small_disk), "The download needs 0.0 GB", "has 0.0 GB free", "HF_HOME"
    )
    assert hub.sent == []


def on_a_small_disk(*arguments: str) -> None:
    usage = shutil.disk_usage
    shutil.disk_usage = lambda path: usage(path)._replace(free=9)  # type: ignore[assignment]
    run_program(*arguments)


# --- the chat fetches what it needs


def test_asking_a_model_that_is_not_here_fetches_it(computer: Computer, hub: FakeHub) -> None:
    hub.repos |= {f"demo/{model}": repo_of(BUNDLED_PAIR / model) for model in ("target", "drafter")}
    question = ("-p", "Hello", "--max-new-tokens", "8", "demo/target", "--draft", "demo/drafter", *UNTIMED)
    hub.troubles["model.safetensors"] = Trouble(cut_after=[1_000_000])
    first = computer.run(*question, "--stream-json")
    events = [json.loads(line) for line in first.stdout.splitlines()]
    downloads = [event for event in events if event.get("phase") == "downloading"]
    total = sum(len(content) for name in ("demo/target", "demo/drafter") for content in hub.repos[name].files.values())
    assert {(event["total"], event["unit"]) for event in downloads} == {(total, "bytes")}
    amounts = [event["done"] for event in downloads]
    assert amounts == sorted(amounts) and amounts[-1] == total
    assert downloads[-1]["bytes_per_second"] > 0
    ready = next(event for event in events if event["event"] == "EngineReady")
    assert (ready["target"], ready["drafter"]) == ("demo/target", "demo/drafter")

    hub.forget_requests()
    offline = computer.run(*question, "--offline")
    assert (offline.returncode, offline.stdout) == (0, events[-1]["text"] + "\n") and events[-1]["text"]
    assert hub.num_requests == 0
