"""Renderer: its resources, permissions, and senders and receivers of its queue."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from infra import config
from infra.config import Config
from infra.keys import ConfigError
from infra.wheels import host_runtime
from orbweaver.model.settings import PREFIX, Settings
from orbweaver.rendering.launch import INSTALL
from orbweaver.rendering.task import RenderLimits
from tests.infra.roles import ALLOWED, HOSTING, KIND, LOGS, WORKER
from tests.infra.template import BILLED_IDLE, denies_plain_http, text

if TYPE_CHECKING:
    from tests.infra.template import Synthesize, Synthesized

pytestmark = pytest.mark.infra

RENDERER, ROLE, QUEUE = "RendererProgramFunction", "RendererProgramRole", "FrontierRender"
SENDS = {"<FrontierRender.Arn>": {"sqs:SendMessage"}}
RECEIVES = {
    *("sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes"),
    "sqs:ChangeMessageVisibility",
}


@pytest.fixture(scope="module")
def rendering(synthesize: Synthesize) -> Synthesized:
    return synthesize(rendering="yes")


@pytest.fixture
def here(synthesize: Synthesize, monkeypatch: pytest.MonkeyPatch) -> Synthesized:
    """Return a rendering stack for an emulator on a machine with a browser."""
    monkeypatch.setattr(config, "find_browser", lambda: "/usr/bin/chromium")
    return synthesize(rendering="yes", target="local")


def settings_of(made: Synthesized, function: str) -> Settings:
    variables = made.properties(KIND)[function]["Environment"]["Variables"]
    return Settings.from_environment(
        {key: text(value) for key, value in variables.items() if key.startswith(PREFIX)}
    )


def test_renderer_is_absent_by_default(aws: Synthesized, rendering: Synthesized) -> None:
    before, after = aws.template["Resources"], rendering.template["Resources"]
    assert "ender" not in json.dumps([*before, aws.template["Outputs"]])
    assert f"{PREFIX}RENDER_QUEUE_URL" not in json.dumps(before)
    added = {name: after[name]["Type"] for name in after.keys() - before.keys()}
    assert all(name.startswith(("Renderer", QUEUE)) for name in added)
    assert not [kind for kind in added.values() if kind.startswith(BILLED_IDLE)]
    outputs = rendering.template["Outputs"]
    found = {key: text(outputs[key]["Value"]) for key in outputs.keys() - aws.template["Outputs"]}
    assert found == {
        "RenderQueueUrl": "<FrontierRender>",
        "RenderEventSource": "<RendererRender>",
        "RendererFunction": "<RendererProgramFunction>",
        "RendererLogGroup": "<RendererProgramLogs>",
    }


def test_renderer_role_equals_workers_except_queues(rendering: Synthesized) -> None:
    worker = {name: set(actions) for name, actions in ALLOWED["WorkerProgramRole"].items()}
    expected = {**worker, "<FrontierRender.Arn>": RECEIVES | {"sqs:SendMessage"}}
    for lane in ("Crawl", "Express"):
        expected[f"<Frontier{lane}.Arn>"] = {"sqs:SendMessage"}
    del expected["<FrontierSeeds.Arn>"], expected["<WorkerProgramLogs.Arn>"]
    assert rendering.allowed(ROLE) == {**expected, "<RendererProgramLogs.Arn>": LOGS}


def test_pack_senders_can_send_to_renderer_queue(
    rendering: Synthesized, synthesize: Synthesize
) -> None:
    senders = {
        role: allowed
        for role, allowed in ALLOWED.items()
        if "sqs:SendMessage" in allowed.get("<FrontierCrawl.Arn>", ())
    }
    del senders["StarterProgramRole"]
    assert senders.keys() == {"WorkerProgramRole", "ApiProgramRole"}
    for role, allowed in ALLOWED.items():
        assert rendering.allowed(role) == allowed | (SENDS if role in senders else {})
    for name, function in rendering.properties(KIND).items():
        variables = function.get("Environment", {}).get("Variables", {})
        knows = f"{PREFIX}RENDER_QUEUE_URL" in variables
        assert knows is (f"{PREFIX}PACKS_TABLE" in variables), name
    hosting = synthesize(rendering="yes", console="yes").allowed("ConsoleProgramRole")
    counts = {"<FrontierRender.Arn>": {"sqs:SendMessage", "sqs:GetQueueAttributes"}}
    assert hosting == HOSTING | counts


def test_renderer_queue_is_like_others(rendering: Synthesized) -> None:
    queues = rendering.properties("AWS::SQS::Queue")
    queue, crawl = queues[QUEUE], queues["FrontierCrawl"]
    assert queue["QueueName"] == "Orbweaver-render"
    assert {**crawl, "QueueName": 0, "VisibilityTimeout": 0} == {
        **queue,
        "QueueName": 0,
        "VisibilityTimeout": 0,
    }
    function = rendering.properties(KIND)[RENDERER]
    source = rendering.properties("AWS::Lambda::EventSourceMapping")["RendererRender"]
    window_s = source["MaximumBatchingWindowInSeconds"]
    assert queue["VisibilityTimeout"] >= 6 * function["Timeout"] + window_s
    allowed = queues["FrontierDeadLetters"]["RedriveAllowPolicy"]["sourceQueueArns"]
    names = {text(arn).rsplit(":", maxsplit=1)[-1] for arn in allowed}
    assert names == {f"Orbweaver-{lane}" for lane in ("crawl", "express", "seeds", "render")}
    (policy,) = (
        policy
        for policy in rendering.properties("AWS::SQS::QueuePolicy").values()
        if [text(one) for one in policy["Queues"]] == [f"<{QUEUE}>"]
    )
    assert denies_plain_http(policy["PolicyDocument"]["Statement"], "sqs:*")


def test_renderer_event_source(rendering: Synthesized, synthesize: Synthesize) -> None:
    source = rendering.properties("AWS::Lambda::EventSourceMapping")["RendererRender"]
    assert text(source["EventSourceArn"]) == "<FrontierRender.Arn>"
    assert text(source["FunctionName"]) == f"<{RENDERER}>"
    assert source["ScalingConfig"] == {"MaximumConcurrency": 10}
    assert source["BatchSize"] == 5
    assert source["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
    assert source["Enabled"] is True
    given = {"renderer_concurrency_max": "7", "worker_enabled": "no"}
    other = synthesize(rendering="yes", **given).properties("AWS::Lambda::EventSourceMapping")
    assert other["RendererRender"]["ScalingConfig"] == {"MaximumConcurrency": 7}
    assert other["RendererRender"]["Enabled"] is False


def test_renderer_function_has_browsers_platform_and_memory(rendering: Synthesized) -> None:
    function = rendering.properties(KIND)[RENDERER]
    assert (function["MemorySize"], function["Timeout"]) == (2048, 240)
    assert function["Architectures"] == ["x86_64"]
    assert function["Runtime"] == "python3.13"
    assert function["EphemeralStorage"] == {"Size": 1024}
    assert function["RecursiveLoop"] == "Allow"
    settings, worker = settings_of(rendering, RENDERER), settings_of(rendering, WORKER)
    assert settings.function.browser == "/var/task/browser"
    assert worker.function.browser == ""
    assert settings.queues.render_queue_url == worker.queues.render_queue_url == "<FrontierRender>"
    reserve_s = settings.worker.apply_reserve_s - worker.worker.apply_reserve_s
    assert reserve_s == RenderLimits().page_s_max
    assert settings.fetching.fetch_total_s + settings.worker.apply_reserve_s < function["Timeout"]


def test_renderer_time_has_x86_64_price(rendering: Synthesized, here: Synthesized) -> None:
    renderer, worker = settings_of(rendering, RENDERER), settings_of(rendering, WORKER)
    assert renderer.function.memory_mb == 2048
    assert (renderer.function.architecture, worker.function.architecture) == ("x86_64", "arm64")
    assert settings_of(here, RENDERER).function.architecture == "arm64"


def test_emulator_uses_this_machines_browser(here: Synthesized) -> None:
    function = here.properties(KIND)[RENDERER]
    assert f"{function['Architectures'][0]}/{function['Runtime']}" == host_runtime()
    assert "EphemeralStorage" not in function
    assert settings_of(here, RENDERER).function.browser == "installed"


def test_emulator_without_browser_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(config, "find_browser", lambda: None)
    with pytest.raises(ConfigError, match=INSTALL):
        Config.from_context({"target": "local", "rendering": "yes"})
    assert Config.from_context({"rendering": "yes"}).renderer_runs_on.architecture == "x86_64"


def test_frugal_stack_can_render(synthesize: Synthesize) -> None:
    made = synthesize(rendering="yes", frugal="yes")
    queues = made.properties("AWS::SQS::Queue")
    assert {QUEUE, "FrontierCrawl"} <= queues.keys()
    assert "FrontierExpress" not in queues
    sent = {name for name, actions in made.allowed(ROLE).items() if "sqs:SendMessage" in actions}
    assert sent == {f"<Frontier{one}.Arn>" for one in ("Crawl", "Render", "DeadLetters")}


def test_renderer_is_on_dashboard_and_optional_alarms(
    rendering: Synthesized, synthesize: Synthesize
) -> None:
    body = rendering.only("AWS::CloudWatch::Dashboard")["DashboardBody"]
    shown = text(body)
    for part in ("<FrontierRender.QueueName>", f"<{RENDERER}>", "<RendererProgramLogs>"):
        assert part in shown, part
    alarms = synthesize(rendering="yes", alarms="all").properties("AWS::CloudWatch::Alarm")
    without = synthesize(alarms="all").properties("AWS::CloudWatch::Alarm")
    added = {name: alarms[name] for name in alarms.keys() - without.keys()}
    assert added.keys() == {
        *("MonitoringRenderAge", "MonitoringRendererErrors", "MonitoringRenderStarts")
    }
    for alarm in added.values():
        assert alarm["TreatMissingData"] == "notBreaching"
        assert "Run: " in alarm["AlarmDescription"]
