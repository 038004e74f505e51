"""Messages of the app-server, one of each kind."""

from __future__ import annotations

from typing import Any

from limner.frontends.appserver.protocol import (
    accounts,
    base,
    config,
    items,
    notifications,
    server_requests,
    startup,
    threads,
    turns,
)
from limner.frontends.appserver.protocol.base import (
    AudioInput,
    ImageInput,
    InputAudio,
    InputImage,
    InputText,
    LocalImageInput,
    TextInput,
    WorkspaceWrite,
)

PIXEL = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGP4z8DwHwAFAAH"
    "/iZk9HQAAAABJRU5ErkJggg=="
)
TIMES: dict[str, Any] = {"started_at_ms": 1794704375729, "completed_at_ms": 1794704375731}

THREAD_ITEMS: tuple[items.ThreadItem, ...] = (
    items.UserMessage(
        id="u1",
        content=(
            TextInput(text="What is on screen?"),
            ImageInput(url=PIXEL),
            ImageInput(url=PIXEL, detail="original"),
            LocalImageInput(path="/a.png"),
            AudioInput(url="data:audio/wav;base64,AAAA"),
        ),
        **TIMES,
    ),
    items.AgentMessage(id="m1", text="I see a dot.", phase="final_answer", **TIMES),
    items.Reasoning(id="r1", summary=("Looking.",), content=("A dot?",), **TIMES),
    items.DynamicToolCall(
        id="call_1", tool="shot", arguments={"target": "window"}, status="inProgress", **TIMES
    ),
    items.DynamicToolCall(
        id="call_2",
        tool="shot",
        namespace="screen",
        arguments={},
        status="completed",
        content_items=(
            InputText(text="taken"),
            InputImage(image_url=PIXEL),
            InputImage(image_url=PIXEL, detail="low", label="left"),
            InputAudio(audio_url="data:audio/wav;base64,AAAA"),
        ),
        success=True,
        duration_ms=2,
        **TIMES,
    ),
    items.FunctionCallOutput(id="o1", name="news", output=[{"type": "input_text", "text": "x"}]),
    items.ImageView(id="v1", path="/a.png", **TIMES),
    items.ImageGeneration(id="g1", status="completed", result="iVBO", saved_path="/b.png", **TIMES),
    items.ContextCompaction(id="c1", **TIMES),
)

TURN = turns.Turn(
    id="t1",
    root_turn_id="t1",
    items=THREAD_ITEMS,
    status="failed",
    error=turns.TurnError(message="no", codex_error_info="badRequest"),
    started_at=1794704375,
    completed_at=1794704376,
    duration_ms=332,
)

THREAD = threads.Thread(
    id="01a1dcb7-7dea-7d33-8136-def2e2c6b1c2",
    environments=(threads.ThreadEnvironment(environment_id="local", cwd="/desk"),),
    session_id="01a1dcb7-7dea-7d33-8136-def2e2c6b1c2",
    preview="What is on screen?",
    ephemeral=False,
    model_provider="openai",
    model="gpt-5.5",
    created_at=1794704375,
    updated_at=1794704375,
    recency_at=1794704375,
    status=threads.Active(active_flags=("waitingOnApproval",)),
    path="/home/x.jsonl",
    cwd="/desk",
    cli_version="0.166.0",
    originator="probe",
    source="vscode",
    can_accept_direct_input=True,
    turns=(TURN,),
)

_OPENED: dict[str, Any] = {
    "thread": THREAD,
    "model": "gpt-5.5",
    "model_provider": "openai",
    "cwd": "/desk",
    "approval_policy": "on-request",
    "sandbox": WorkspaceWrite(writable_roots=("/desk",)),
}
_GOAL = accounts.ThreadGoal(thread_id="a", objective="win", created_at=1, updated_at=2)
_TOKENS = notifications.TokenUsageBreakdown(
    total_tokens=110,
    input_tokens=100,
    cached_input_tokens=0,
    output_tokens=10,
    reasoning_output_tokens=0,
)
_TURN_OF: dict[str, Any] = {"thread_id": "a", "turn_id": "t1"}

_READ_STATE = threads.ThreadReadState(first_unread=threads.TurnPosition(turn_id="t1"), revision="r")
_MODE = threads.CollaborationMode(settings=threads.CollaborationSettings(model="m"))

LAYER = config.ConfigLayerMetadata(
    name=config.UserLayer(file="/home/config.toml"), version="sha256:1"
)

RESULTS: dict[str, Any] = {
    **{
        type(row.answer).__name__: row.answer
        for row in startup.METHODS.values()
        if row.answer is not None
    },
    "SkillsListResponse": startup.SkillsListResponse(data=(startup.SkillsListEntry(cwd="/w"),)),
    "HooksListResponse": startup.HooksListResponse(data=(startup.HooksListEntry(cwd="/w"),)),
    "RemoteControlStatusReadResponse": startup.RemoteControlStatusReadResponse(
        server_name="here", installation_id="i"
    ),
    "ThreadItemsReadResponse": threads.ThreadItemsReadResponse(
        data=(items.ThreadItemEntry(item=THREAD_ITEMS[0], turn_id="t1"),)
    ),
    "ThreadSearchResponse": threads.ThreadSearchResponse(
        data=(threads.ThreadSearchResult(thread=THREAD, snippet="a"),)
    ),
    "ThreadMetadataUpdateResponse": threads.ThreadMetadataUpdateResponse(thread=THREAD),
    "ThreadReadStateUpdateResponse": threads.ThreadReadStateUpdateResponse(read_state=_READ_STATE),
    "ThreadRevertResponse": threads.ThreadRevertResponse(thread=THREAD),
    "ThreadStartResponse": threads.ThreadStartResponse(**_OPENED),
    "ThreadResumeResponse": threads.ThreadResumeResponse(**_OPENED),
    "ThreadForkResponse": threads.ThreadForkResponse(**_OPENED),
    "ThreadListResponse": threads.ThreadListResponse(data=(THREAD,), next_cursor=">x"),
    "ThreadReadResponse": threads.ThreadReadResponse(thread=THREAD),
    "ThreadUnarchiveResponse": threads.ThreadUnarchiveResponse(thread=THREAD),
    "ThreadUnsubscribeResponse": threads.ThreadUnsubscribeResponse(status="unsubscribed"),
    "ThreadLoadedListResponse": threads.ThreadLoadedListResponse(data=("a",)),
    "ThreadTurnsListResponse": threads.ThreadTurnsListResponse(data=(TURN,)),
    "ThreadItemsListResponse": threads.ThreadItemsListResponse(
        data=(items.ThreadItemEntry(item=THREAD_ITEMS[0], turn_id="t1"),)
    ),
    "ThreadGoalSetResponse": accounts.ThreadGoalSetResponse(goal=_GOAL),
    "ThreadGoalGetResponse": accounts.ThreadGoalGetResponse(goal=_GOAL),
    "ThreadGoalClearResponse": accounts.ThreadGoalClearResponse(cleared=True),
    "TurnStartResponse": turns.TurnStartResponse(turn=TURN),
    "TurnSteerResponse": turns.TurnSteerResponse(turn_id="t1"),
    "ModelListResponse": accounts.ModelListResponse(
        data=(
            accounts.Model(
                id="openai/gpt-5.5",
                model="openai/gpt-5.5",
                display_name="GPT-5.5",
                description="",
                supported_reasoning_efforts=(
                    accounts.ReasoningEffortOption(reasoning_effort="low", description="quick"),
                ),
                is_default=True,
            ),
        )
    ),
    "GetAccountResponse": accounts.GetAccountResponse(),
    "LoginAccountResponse": accounts.LoginAccountResponse(),
    "CancelLoginAccountResponse": accounts.CancelLoginAccountResponse(),
    "LogoutAccountResponse": accounts.LogoutAccountResponse(),
    "GetAccountRateLimitsResponse": accounts.GetAccountRateLimitsResponse(
        rate_limits=accounts.RateLimitSnapshot(limit_id="codex")
    ),
    "ConfigReadResponse": config.ConfigReadResponse(
        config={"model": "gpt-5.5"},
        origins={"model": LAYER},
        layers=(
            config.ConfigLayer(
                name=config.ProjectLayer(dot_codex_folder="/desk"), version="sha256:0", config={}
            ),
            config.ConfigLayer(name=LAYER.name, version="sha256:1", config={"images": {}}),
        ),
    ),
    "ConfigWriteResponse": config.ConfigWriteResponse(
        status="okOverridden",
        version="sha256:1",
        file_path="/home/config.toml",
        overridden_metadata=config.OverriddenMetadata(
            message="Overridden by session flags: LIMNER_IMAGES_FIT",
            overriding_layer=config.ConfigLayerMetadata(
                name=config.SessionFlagsLayer(), version="sha256:2"
            ),
            effective_value="seed",
        ),
    ),
}

NOTICES: tuple[notifications.Notice, ...] = (
    notifications.ThreadStartedNotification(thread=THREAD),
    notifications.ThreadStatusChangedNotification(thread_id="a", status=threads.Idle()),
    notifications.ThreadStatusChangedNotification(thread_id="a", status=threads.Active()),
    notifications.ThreadStatusChangedNotification(thread_id="a", status=threads.NotLoaded()),
    notifications.ThreadStatusChangedNotification(thread_id="a", status=threads.Broken()),
    notifications.ThreadNameUpdatedNotification(thread_id="a", thread_name="b"),
    notifications.ThreadRevertedNotification(thread_id="a"),
    notifications.ThreadSettingsUpdatedNotification(
        thread_id="a",
        thread_settings=threads.ThreadSettings(
            model="m",
            model_provider="openai",
            cwd="/w",
            approval_policy="never",
            sandbox_policy=base.ReadOnly(),
            collaboration_mode=_MODE,
        ),
    ),
    notifications.ThreadArchivedNotification(thread_id="a"),
    notifications.ThreadUnarchivedNotification(thread_id="a"),
    notifications.ThreadDeletedNotification(thread_id="a"),
    notifications.ThreadClosedNotification(thread_id="a"),
    notifications.ThreadGoalUpdatedNotification(thread_id="a", goal=_GOAL),
    notifications.ThreadGoalClearedNotification(thread_id="a"),
    notifications.ThreadReadStateChangedNotification(
        thread_id="a",
        read_state=threads.ThreadReadState(
            first_unread=threads.TurnPosition(turn_id="t1"), revision="r"
        ),
    ),
    notifications.ThreadTokenUsageUpdatedNotification(
        **_TURN_OF, token_usage=notifications.ThreadTokenUsage(total=_TOKENS, last=_TOKENS)
    ),
    notifications.AccountRateLimitsUpdatedNotification(rate_limits=accounts.RateLimitSnapshot()),
    notifications.AccountUpdatedNotification(),
    notifications.AccountLoginCompletedNotification(success=True),
    notifications.TurnStartedNotification(thread_id="a", turn=TURN),
    notifications.TurnCompletedNotification(thread_id="a", turn=TURN),
    *(
        notifications.ItemStartedNotification(item=i, **_TURN_OF, started_at_ms=1)
        for i in THREAD_ITEMS
    ),
    *(
        notifications.ItemCompletedNotification(item=i, **_TURN_OF, completed_at_ms=1)
        for i in THREAD_ITEMS
    ),
    notifications.AgentMessageDeltaNotification(**_TURN_OF, item_id="m1", delta="I"),
    notifications.ReasoningSummaryTextDeltaNotification(
        **_TURN_OF, item_id="r1", delta="L", summary_index=0
    ),
    notifications.ErrorNotification(
        error=turns.TurnError(
            message="no", codex_error_info={"httpConnectionFailed": {"httpStatusCode": 401}}
        ),
        will_retry=False,
        **_TURN_OF,
    ),
    notifications.WarningNotification(thread_id="a", message="odd"),
    notifications.ConfigWarningNotification(summary="odd"),
    notifications.DeprecationNoticeNotification(summary="old"),
    notifications.ServerRequestResolvedNotification(thread_id="a", request_id=0),
)

QUESTIONS: tuple[server_requests.Shape, ...] = (
    server_requests.DynamicToolCallParams(**_TURN_OF, call_id="c", tool="shot", arguments={}),
    server_requests.DynamicToolCallResponse(content_items=[InputText(text="a")], success=True),
    server_requests.CommandExecutionRequestApprovalParams(
        **_TURN_OF, item_id="c", started_at_ms=1, reason="It costs $2.", cwd="/desk"
    ),
    server_requests.CommandExecutionRequestApprovalResponse(decision="accept"),
    server_requests.FileChangeRequestApprovalParams(
        **_TURN_OF, item_id="c", started_at_ms=1, grant_root="/desk"
    ),
    server_requests.FileChangeRequestApprovalResponse(decision="decline"),
)
