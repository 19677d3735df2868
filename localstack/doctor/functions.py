"""Read-only checks of the functions. Only the sizes of environment variables are read."""

from __future__ import annotations

import re
from typing import Any

from localstack.doctor.ground import (
    Check,
    Finding,
    Ground,
    expect,
    judged,
    number,
    passed,
    skipped,
    word,
)
from localstack.doctor.queues import DEPLOY

KIND = "AWS::Lambda::Function"
VARIABLES_BYTES_MAX, ZIP_BYTES_MAX = 4096, 250_000_000
MEMORY = (128, 10_240)
ROOM_MB = 512
RETRIES = 2
RUNTIMES = ("python3.11", "python3.12", "python3.13", "python3.14")
STATES = ("Active", "Pending", "Inactive", "Failed")
REPORT = re.compile(r"Billed Duration: (\d+) ms.*Init Duration: ([\d.]+) ms", re.DOTALL)
HANDLERS = ("worker", "renderer", "exporter", "api", "starter", "notifier", "delivery")


def configurations(ground: Ground) -> dict[str, dict[str, Any]]:
    """Return the configuration of each function, by handler."""
    client = ground.client("lambda")
    found = {}
    for place, one in enumerate(ground.of_kind(KIND)):
        read = client.get_function_configuration(FunctionName=one.name)
        handler = str(read.get("Handler", "")).removeprefix("handlers.").removesuffix(".handler")
        found[handler if handler in HANDLERS else f"function {place}"] = read
    return found


def runtime(ground: Ground) -> Finding:
    """Check each function's Python version, processor and state."""
    problems: list[str] = []
    seen: dict[str, Any] = {}
    for name, one in configurations(ground).items():
        python = word(one.get("Runtime"), *RUNTIMES)
        processor = word((one.get("Architectures") or ["x86_64"])[0], "arm64", "x86_64")
        state = word(one.get("State", "Active"), *STATES)
        seen[name] = f"{processor}/{python} {state}"
        # An emulator runs functions on its own machine, whatever processor it reports.
        wanted = ground.config.functions_run_on
        if name == "renderer":
            wanted = ground.config.renderer_runs_on
        if python != f"python{wanted.python}" or (
            processor != wanted.architecture and not ground.emulator
        ):
            problems.append(f"{name} runs on another runtime")
        if state != "Active":
            problems.append(f"{name} is not active")
    return judged(problems, **seen)


def memory(ground: Ground) -> Finding:
    """Check each function's memory, timeout and temporary storage."""
    problems: list[str] = []
    seen: dict[str, Any] = {}
    wanted = {
        "worker": ground.config.worker_memory_mb,
        "renderer": ground.config.renderer_memory_mb,
        "exporter": ground.config.exporter_memory_mb,
    }
    limits = {
        "worker": ground.config.worker_timeout_s,
        "renderer": ground.config.renderer_timeout_s,
        "exporter": ground.config.exporter_timeout_s,
    }
    rooms = {"exporter": ground.config.exporter_storage_mb}
    if not ground.config.local:
        from infra.rendering_keys import STORAGE_MB

        rooms["renderer"] = STORAGE_MB
    for name, one in configurations(ground).items():
        mb, limit_s = number(one.get("MemorySize")), number(one.get("Timeout"))
        room = number(one.get("EphemeralStorage", {}).get("Size", ROOM_MB))
        seen[name] = {"memory_mb": mb, "timeout_s": limit_s, "room_mb": room}
        if mb != wanted.get(name, mb) or not MEMORY[0] <= mb <= MEMORY[1]:
            problems.append(f"{name} has another memory")
        if limit_s != limits.get(name, limit_s):
            problems.append(f"{name} has another timeout")
        if room != rooms.get(name, room):
            problems.append(f"{name} has another room for files")
    return judged(problems, **seen)


def loop(ground: Ground) -> Finding:
    found = ground.client("lambda").get_function_recursion_config(
        FunctionName=ground.outputs["WorkerFunction"]
    )
    said = word(found["RecursiveLoop"], "Allow", "Terminate")
    return expect(said == ground.config.recursive_loop, "it says otherwise", recursive_loop=said)


def variables(ground: Ground) -> Finding:
    sizes = {
        name: sum(
            len(key.encode()) + len(value.encode())
            for key, value in one.get("Environment", {}).get("Variables", {}).items()
        )
        for name, one in configurations(ground).items()
    }
    over = [
        f"{name} has more than 4 KB" for name, size in sizes.items() if size > VARIABLES_BYTES_MAX
    ]
    return judged(over, **sizes)


def package(ground: Ground) -> Finding:
    sizes = {name: number(one.get("CodeSize")) for name, one in configurations(ground).items()}
    over = [f"{name} is too large" for name, size in sizes.items() if size > ZIP_BYTES_MAX]
    return judged(over, **sizes)


def retries(ground: Ground) -> Finding:
    """Check that a failed asynchronous invocation is retried twice and then sent to a queue."""
    client = ground.client("lambda")
    problems: list[str] = []
    seen: dict[str, Any] = {}
    for key, function in ground.named("ExporterFunction", "StarterFunctionArn").items():
        found = client.get_function_event_invoke_config(FunctionName=function)
        seen[key] = number(found.get("MaximumRetryAttempts"))
        aside = found.get("DestinationConfig", {}).get("OnFailure", {}).get("Destination")
        if seen[key] != RETRIES or not aside:
            problems.append(f"{key} loses what fails")
    return judged(problems, **seen)


def init(ground: Ground) -> Finding:
    """Measure how long a worker's start takes, and whether it is billed."""
    found = ground.client("logs").filter_log_events(
        logGroupName=ground.outputs["WorkerLogGroup"],
        filterPattern='"REPORT" "Init Duration"',
        limit=50,
    )["events"]
    read = [match for one in found if (match := REPORT.search(one["message"]))]
    if not read:
        return skipped("no worker has begun yet: crawl something")
    billed, took = int(read[-1][1]), float(read[-1][2])
    return passed(init_ms=round(took), billed_ms=billed, starts=len(read))


CHECKS = (
    Check(
        id="functions.runtime",
        title="functions run on the configured Python and processor",
        run=runtime,
        assumptions=("A26", "A76"),
        do=DEPLOY,
    ),
    Check(
        id="functions.memory",
        title="functions have their memory, time and room",
        run=memory,
        assumptions=("A20", "A22"),
        do=DEPLOY,
    ),
    Check(
        id="functions.loop",
        title="Lambda does not halt the worker for feeding its own queue",
        run=loop,
        assumptions=("A17",),
        do=DEPLOY,
    ),
    Check(
        id="functions.variables",
        title="variables are within 4 KB",
        run=variables,
        assumptions=("A23",),
        do="set fewer or shorter context keys",
    ),
    Check(
        id="functions.package",
        title="archives are within what Lambda takes",
        run=package,
        assumptions=("A27",),
        do="leave large files out of what is deployed",
    ),
    Check(
        id="functions.retries",
        title="what fails asynchronously is repeated and put aside",
        run=retries,
        assumptions=("A24",),
        do=DEPLOY,
        not_on_emulator="its CloudFormation passes over AWS::Lambda::EventInvokeConfig",
    ),
    Check(
        id="functions.init",
        title="how long a worker takes to begin",
        run=init,
        assumptions=("A21",),
        do="look at the worker's log group",
        not_on_emulator="its functions have no init phase that is measured",
    ),
)
