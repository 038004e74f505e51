"""`limner chat` at a terminal: words, calls, pictures, commands, questions and interruptions."""

from __future__ import annotations

import json
import re
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.acceptance.conftest import picture
from tests.agent.talking import Talk
from tests.frontends.chatting import PROMPT, Chat, chat, with_model
from tests.frontends.cli_process import CLEAR_LINE, CommandLine
from tests.servers.scripted import calls, says

from limner.testing.servers.http_server import Gate, Reply
from limner.testing.servers.replicate_server import ReplicateServer

pytestmark = pytest.mark.slow

DRAW = ("image_generate", '{"prompt": "a red fox"}')
LOST = ("inspect_image", '{"path": "nowhere.png", "question": "What is it?"}')
PASTED = "\x1b[200~{}\x1b[201~"
SESSION = re.compile(r"limner chat --resume ([0-9a-f-]{36})\n")


@pytest.fixture
def scripted(tmp_path: Path) -> Iterator[tuple[Talk, CommandLine]]:
    with with_model(tmp_path) as made:
        yield made


def plain(sent: str) -> list[str]:
    """The lines that can be read, without how they look or what was replaced."""
    lines = [line.rpartition(CLEAR_LINE)[2] for line in sent.split("\n")]
    clean = [re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]|\r", "", line) for line in lines]
    return [re.sub(r"\d+\.\d s$", "N s", line) for line in clean]


def test_a_fresh_machine_draws_looks_and_says_who_it_is(cli: CommandLine) -> None:
    person = chat(cli, columns=400)
    greeting = plain(person.prompted())
    drawn = plain(person.say("draw a red fox"))
    seen = plain(person.say("what colours are in it?"))
    done = person.leave()
    (file,) = cli.studio.files
    assert greeting == [
        "limner/offline. /help lists the commands.",
        "This is limner/offline: rules that draw and look, not a language model.",
        "Set OPENAI_API_KEY, or another key, to use one.",
        "",
    ]
    assert drawn[:2] == ["draw a red fox", "✓ image_generate  a red fox · $0.00 · N s"]
    assert drawn[2].strip("▀") == ""
    assert f"Here it is: {file} (1024 x 1024, free)." in drawn
    assert drawn[-2:] == ["$0.00 · session $0.00", ""]
    assert seen[1] == "✓ inspect_image  what colours are in it? · $0.00 · N s"
    assert seen[2].startswith("  Answer: The colours are ")
    assert done.status == 0
    assert SESSION.search(done.err)


def test_words_are_shown_as_they_come_and_a_turn_tells_its_price(
    scripted: tuple[Talk, CommandLine],
) -> None:
    model, cli = scripted
    gate = Gate()
    model.script(says("Once ", "upon ", gate=gate), says("Bye."))
    person = chat(cli)
    person.prompted()
    person.press("Tell me a story.\r")
    person.see("Once upon ")
    gate.open()
    rest = plain(person.prompted())
    assert re.fullmatch(r"\$0\.\d+ · session \$0\.\d+ · 1,200 tokens in, 45 out", rest[-2]), rest
    person.say("And then?")
    assert person.leave().status == 0


def test_a_line_typed_in_the_middle_of_a_turn_steers_it(
    scripted: tuple[Talk, CommandLine],
) -> None:
    model, cli = scripted
    gate = Gate()
    model.script(says("A red fox", gate=gate), says("A blue one then."))
    person = chat(cli)
    person.prompted()
    person.press("Describe a fox.\r")
    person.see("A red fox")
    person.press("no, \x7f\x7fmake it blue")
    person.see(f"{CLEAR_LINE}» nomake it blue")
    person.press("\x15make it blue\r")
    person.see(f"{CLEAR_LINE}» make it blue\n")
    gate.open()
    assert "A blue one then." in plain(person.prompted())
    assert "make it blue" not in model.asked[0]
    assert '"make it blue"' in model.asked[1]
    person.leave()


def test_the_turn_waits_for_a_line_that_is_being_typed_and_nothing_of_either_is_lost(
    scripted: tuple[Talk, CommandLine],
) -> None:
    model, cli = scripted
    gate = Gate()
    model.script(says("Well", gate=gate), says("Four."))
    person = chat(cli)
    person.prompted()
    person.press("Hello.\r")
    person.see("Well")
    person.press("two and two?")
    person.see("» two and two?")
    gate.open()
    person.press("\r")
    # It steers the turn, or is the next message where the turn was over first.
    person.see("Four.")
    assert '"two and two?"' in model.asked[1]
    person.prompted()
    person.leave()


def test_ctrl_c_stops_the_turn_and_the_conversation_goes_on(
    scripted: tuple[Talk, CommandLine],
) -> None:
    model, cli = scripted
    model.script(says("I will never", gate=Gate()), says("Here I am."))
    person = chat(cli)
    person.prompted()
    person.press("Wait for ever.\r")
    person.see("I will never")
    person.interrupt()
    stopped = plain(person.prompted())
    assert [line for line in stopped if line][:2] == [
        "Stopping. Ctrl-C again leaves.",
        "Interrupted.",
    ]
    assert "Here I am." in plain(person.say("Are you there?"))
    person.interrupt()
    done = person.end()
    assert done.status == 130
    assert SESSION.search(done.err)


async def test_a_second_ctrl_c_leaves_while_the_turn_is_being_stopped(
    scripted: tuple[Talk, CommandLine], replicate: ReplicateServer
) -> None:
    model, cli = scripted
    cli.studio.connect(replicate)
    replicate.looks = 1_000_000
    gate = Gate()
    replicate.always("cancel", Reply(hold=gate))
    flux = json.dumps({"prompt": "a fox", "provider": "replicate-flux"})
    model.script(calls(("image_generate", flux)), says("Done."))
    person = chat(cli)
    person.prompted()
    person.press("Draw.\r")
    await replicate.wait_until("look")
    person.interrupt()
    person.see("Stopping. Ctrl-C again leaves.")
    await replicate.wait_until("cancel")
    person.interrupt()
    gate.open()
    done = person.end()
    assert done.status == 130
    assert SESSION.search(done.err)


def test_a_question_is_asked_and_only_yes_is_yes(scripted: tuple[Talk, CommandLine]) -> None:
    model, cli = scripted
    model.script(calls(DRAW), calls(DRAW, start=2), says("Once is enough."))
    person = chat(cli, "--approval", "untrusted")
    person.prompted()
    person.press("Draw a fox.\r")
    assert "A picture from openai-image costs $" in person.see("Go on?\n[y/N] ")
    person.press("maybe\r")
    person.see("✗ image_generate")
    person.see("Go on?\n[y/N] ")
    assert model.drawer.requests == []
    person.press("YES\r")
    person.see("✓ image_generate")
    assert "Once is enough." in plain(person.prompted())
    assert len(model.drawer.requests) == 1
    person.leave()


def test_ctrl_c_at_a_question_is_no(scripted: tuple[Talk, CommandLine]) -> None:
    model, cli = scripted
    model.script(calls(DRAW), says("Hello."))
    person = chat(cli, "--approval", "untrusted")
    person.prompted()
    person.press("Draw a fox.\r")
    person.see("[y/N] ")
    person.interrupt()
    assert "Interrupted." in plain(person.prompted())
    assert "Hello." in plain(person.say("Hello?"))
    assert model.drawer.requests == []
    person.leave()


def test_a_hostile_answer_cannot_drive_the_terminal(scripted: tuple[Talk, CommandLine]) -> None:
    model, cli = scripted
    evil = "\x1b]0;gone\x07\x1b[2J\x9b2J"
    asked = json.dumps({"prompt": evil, "output_path": f"/etc/{evil}"})
    model.script(calls(("image_generate", asked)), says(f"Hi {evil}", "\r\nthere"))
    person = chat(cli)
    person.prompted()
    sent = person.say("Hello.")
    assert "Hi \\u001b]0;gone\\u0007\\u001b[2J\\u009b2J" in plain(sent)
    assert "there" in plain(sent)
    assert "\x1b[2J" not in sent
    assert "\x1b]" not in sent
    assert "\x9b" not in sent
    person.say("/expand")
    assert "\x1b[2J" not in person.leave().err


def test_a_tool_that_fails_says_why_and_expand_tells_more(
    scripted: tuple[Talk, CommandLine],
) -> None:
    model, cli = scripted
    model.script(calls(LOST), says("It is not there."))
    person = chat(cli, columns=120)
    person.prompted()
    told = plain(person.say("Look."))
    assert told[1] == "✗ inspect_image  What is it? · $0.00 · N s"
    assert told[2].startswith("  ")
    assert "nowhere.png" in told[2]
    more = plain(person.say("/expand"))
    assert more[1:5] == [*told[1:3], "  path: nowhere.png", "  question: What is it?"]
    assert plain(person.say("/verbose"))[1] == "Calls are now shown in full."
    model.script(calls(LOST), says("Still not."))
    assert "  path: nowhere.png" in plain(person.say("Again."))
    person.leave()


def test_a_model_that_wants_forty_pictures_stays_below_the_cap(
    scripted: tuple[Talk, CommandLine],
) -> None:
    model, cli = scripted
    forty = [("image_generate", f'{{"prompt": "fox {n}"}}') for n in range(40)]
    model.script(calls(*forty), says("That is all I could."))
    person = chat(cli, "--budget", "0.10", env={"TERM": "dumb"})
    person.see("> ")
    person.press("Draw forty foxes.\r")
    sent = plain(person.see("tokens in"))
    lines = [line for line in sent if line.startswith(("✓", "✗"))]
    drawn = [line for line in lines if line.startswith("✓")]
    assert len(lines) == 40
    assert 0 < len(drawn) == len(model.drawer.requests) < 8
    assert float(re.findall(r"session \$([\d.]+)", sent[-1])[0]) <= 0.10
    person.see("> ")
    person.leave()


def test_the_path_of_a_picture_attaches_it(scripted: tuple[Talk, CommandLine]) -> None:
    model, cli = scripted
    model.script(says("I see."))
    (model.cwd / "my fox.png").write_bytes(picture(64, 48))
    (model.cwd / "broken.png").write_bytes(b"no picture")
    path = model.cwd / "my fox.png"
    attached = f"Attached: {path} (64x48)"
    person = chat(cli, columns=400)
    person.prompted()
    alone = plain(person.say(str(path).replace(" ", "\\\\ ").replace("\\\\", "\\")))
    assert alone[1:3] == [attached, "Now write a message about it."]
    assert attached not in plain(person.say("What is it?"))
    assert model.asked[0].count("input_image") == 1
    inside = plain(person.say(f"Look at 'my fox.png' and file://{path.as_uri()[7:]}."))
    assert inside[1] == attached
    assert model.asked[1].count("input_image") == 2
    broken = plain(person.say("And broken.png?"))
    assert broken[1].startswith(f"Not attached: {model.cwd / 'broken.png'}: ")
    assert plain(person.say('/attach "my fox.png"'))[1] == attached
    assert plain(person.say("/attach nowhere.png"))[1].startswith("limner: ")
    person.leave()


def test_pasted_lines_and_continued_lines_are_one_message_and_kept_as_such(
    scripted: tuple[Talk, CommandLine],
) -> None:
    model, cli = scripted
    model.script(says("I see."))
    person = chat(cli)
    person.prompted()
    person.say(PASTED.format("one\rtwo"))
    person.press("three\\\r")
    person.see("\x1b[?2004h  ")
    person.say("four")
    person.leave()
    said = [json.loads(body)["input"][-1]["content"][0]["text"] for body in model.asked]
    assert said == ["one\ntwo", "three\nfour"]
    history = model.home / "chat_history"
    assert [json.loads(line) for line in history.read_text().splitlines()] == said
    assert stat.S_IMODE(history.stat().st_mode) == 0o600
    again = chat(cli)
    again.prompted()
    again.press("\x1b[A\x1b[A")
    again.see("two")
    again.press("\r")
    again.prompted()
    assert json.loads(model.asked[2])["input"][-1]["content"][0]["text"] == "one\ntwo"
    again.leave()


def test_sessions_are_left_resumed_copied_and_started_anew(
    scripted: tuple[Talk, CommandLine],
) -> None:
    model, cli = scripted
    model.script(says("Noted."))
    person = chat(cli)
    person.prompted()
    person.say("My cat is called Ada.")
    first = SESSION.search(person.leave().err)
    assert first is not None
    again = chat(cli, "--resume", first[1][:8])
    assert f"Session {first[1]}: My cat is called Ada." in plain(again.prompted())
    again.say("What is it called?")
    assert "My cat is called Ada." in model.asked[-1]
    copy = plain(again.say("/fork"))[1]
    assert copy.startswith("You are now in a copy, ")
    again.say("/new")
    again.say("Hello.")
    assert "Ada" not in model.asked[-1]
    listed = plain(again.say("/resume"))[1:-1]
    assert [line[:1] for line in listed] == ["*", " ", " "]
    assert plain(again.say(f"/resume {first[1]}"))[1].startswith(f"Session {first[1]}")
    assert plain(again.say("/resume zzz"))[1] == "limner: There is no session 'zzz'."
    assert again.leave().err.endswith(f"To resume: limner chat --resume {first[1]}\n")


def test_the_other_commands(scripted: tuple[Talk, CommandLine]) -> None:
    model, cli = scripted
    model.script(calls(DRAW), says("A fox."), says("They drew a fox."), says("Hi."))
    person = chat(cli, columns=100)
    person.prompted()
    assert plain(person.say("/spend"))[1] == ("$0.00 in this session, $0.00 today, $0.00 in all")
    assert plain(person.say("/spned"))[1:3] == [
        "limner: There is no command /spned.",
        "  Did you mean /spend?",
    ]
    assert "  /quit                exit; so does Ctrl-D" in plain(person.say("/help"))
    assert "* openai/gpt-5.4" in plain(person.say("/model"))
    assert "limner: There is nothing to summarize yet." in plain(person.say("/compact"))
    assert "limner: There is nothing to copy yet." in plain(person.say("/fork"))
    person.say("Draw a fox.")
    (file,) = cli.studio.files
    assert "The conversation was summarized; it names 1 picture." in plain(person.say("/compact"))
    shown = plain(person.say(f"/show {file}"))
    assert shown[-2].startswith("image/png  1024x1024  ")
    everyone = plain(person.say("/personality"))
    assert [line[:2] for line in everyone if ": " in line].count("* ") == 1
    assert "The personality is now alt-text" in person.say("/personality alt-text")
    assert "limner: There is no personality 'nobody'." in plain(person.say("/personality nobody"))
    assert plain(person.say("/model limner/offline"))[1] == ("The model is now limner/offline.")
    assert "limner: There is no model 'nothing'." in plain(person.say("/model nothing"))
    person.press("/quit\r")
    assert person.end().status == 0


def test_a_command_typed_in_the_middle_of_a_turn_waits_for_its_end(
    scripted: tuple[Talk, CommandLine],
) -> None:
    model, cli = scripted
    gate = Gate()
    model.script(says("Wait", gate=gate))
    person = chat(cli)
    person.prompted()
    person.press("Hello.\r")
    person.see("Wait")
    person.press("/quit\r")
    person.see("The command will run after this turn.")
    gate.open()
    assert person.end().status == 0


def test_a_message_on_the_command_line_is_the_first_one(
    scripted: tuple[Talk, CommandLine],
) -> None:
    model, cli = scripted
    model.script(says("A fox."))
    (model.cwd / "fox.png").write_bytes(picture(64, 48))
    person = chat(cli, "What", "is it?", "--image", "fox.png")
    assert "A fox." in plain(person.prompted())
    assert "What is it?" in model.asked[0]
    assert model.asked[0].count("input_image") == 1
    person.leave()


def test_a_terminal_that_is_gone_ends_the_turn_and_the_program(
    scripted: tuple[Talk, CommandLine],
) -> None:
    model, cli = scripted
    model.script(says("I will never", gate=Gate()))
    person = chat(cli)
    person.prompted()
    person.press("Wait for ever.\r")
    person.see("I will never")
    assert person.hang_up() == 0


def test_leaving_without_a_word_leaves_no_session(cli: CommandLine) -> None:
    person = chat(cli)
    person.prompted()
    assert "resume" not in person.leave().err
    assert cli.run("sessions", "list", "--json").json["sessions"] == []


def test_who_cannot_be_talked_with_is_told_before_the_first_prompt(cli: CommandLine) -> None:
    done = Chat(cli.in_terminal("chat", "--model", "openai/gpt-5.4", piped=False)).end()
    assert done.status == 2
    assert done.err.startswith("limner: No API key available for openai/gpt-5.4.\n")
    assert PROMPT not in done.err
