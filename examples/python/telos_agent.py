"""Drives Telos from Python: interview, plan, stories, and the loop that builds them. Needs nothing but the standard library.

It starts `telos-agent serve` and speaks JSON-RPC with it, one message a line. TELOS_AGENT names another command to start.
"""

import json
import os
import shlex
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable, Optional


class TelosError(RuntimeError):
    """A call that Telos refused or could not finish. The message says what to do."""


@dataclass
class InterviewResult:
    questions: list
    ready: bool


@dataclass
class RalphResult:
    success: bool
    iterations: int
    final_verdict: Optional[dict] = None
    error: Optional[str] = None
    iteration_results: list = field(default_factory=list)
    denial_streak: int = 0
    checks_not_run: list = field(default_factory=list)


class InterviewRunner:
    def __init__(self, orchestrator: "TelosOrchestrator"):
        self._orchestrator = orchestrator
        self._number = orchestrator._call("interview")["interview"]

    def process_round(self, transcript: str, no_more_questions: bool = False) -> InterviewResult:
        """Returns further questions, or that a plan can be written. The transcript is the whole conversation so far."""
        params = {"interview": self._number, "transcript": transcript, "no_more_questions": no_more_questions}
        return InterviewResult(**self._orchestrator._call("process_round", **params))

    def get_context(self) -> str:
        return self._orchestrator._call("get_context", interview=self._number)


class TelosOrchestrator:
    """`approve` is asked before a command that needs a yes; True allows all, and without it the answer is no."""

    def __init__(
        self,
        project_dir,
        context_dir=None,
        max_iterations: int = 10,
        model: Optional[str] = None,
        timeout: int = 900,
        plan_dir=None,
        approve: Any = None,
        on_event: Optional[Callable[[dict], None]] = None,
    ):
        self._approve, self._on_event, self._last = approve, on_event, 0
        command = shlex.split(os.environ.get("TELOS_AGENT", "telos-agent"))
        self._process = subprocess.Popen(
            [*command, "serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
        )
        path = lambda given: None if given is None else str(Path(given).resolve())
        self._call(
            "initialize",
            project_dir=path(project_dir),
            context_dir=path(context_dir),
            max_iterations=max_iterations,
            model=model,
            timeout=timeout,
            plan_dir=path(plan_dir),
            approve="all" if approve is True else "ask" if callable(approve) else "none",
            events=on_event is not None,
        )

    def interview(self) -> InterviewRunner:
        return InterviewRunner(self)

    def generate_plan(self, context: str) -> Path:
        return Path(self._call("generate_plan", context=context))

    def generate_prds(self) -> Path:
        return Path(self._call("generate_prds"))

    def execute(self) -> RalphResult:
        return RalphResult(**self._call("execute"))

    def plan_and_execute(self, context: str) -> RalphResult:
        return RalphResult(**self._call("plan_and_execute", context=context))

    def close(self) -> None:
        if self._process.poll() is None:
            self._process.stdin.close()
            self._process.wait()
        self._process.stdout.close()

    def __enter__(self) -> "TelosOrchestrator":
        return self

    def __exit__(self, *_error) -> None:
        self.close()

    def __del__(self) -> None:
        if hasattr(self, "_process"):
            self.close()

    def _call(self, method: str, **params) -> Any:
        self._last += 1
        self._send({"id": self._last, "method": method, "params": params})
        for line in self._process.stdout:
            message = json.loads(line)
            if "method" in message:
                self._answer(message)
            elif message.get("id") == self._last:
                if "error" in message:
                    raise TelosError(message["error"]["message"])
                return message["result"]
        raise TelosError("telos-agent ended before it answered.")

    def _answer(self, message: dict) -> None:
        """Passes an event on, or answers a question of Telos."""
        params = message.get("params", {})
        if message["method"] == "event" and self._on_event:
            self._on_event(params["event"])
        if "id" in message:
            allowed = message["method"] == "approve" and callable(self._approve) and self._approve(params) is True
            self._send({"id": message["id"], "result": allowed})

    def _send(self, message: dict) -> None:
        try:
            self._process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
            self._process.stdin.flush()
        except (BrokenPipeError, ValueError) as error:
            raise TelosError("telos-agent is not running.") from error
