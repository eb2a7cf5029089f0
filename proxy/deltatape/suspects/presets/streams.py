"""Presets for all streams: endings, calls in text, reading of bytes."""

from deltatape.suspects.client import ClientModel, Preset

ENDS = (
    Preset(
        name="finish-only-on-tool-calls",
        clients=(ClientModel(emit="on-tool-calls"),),
        place=6,
        summary="It uses calls only if the finish reason is `tool_calls`.",
        does="""
            Providers end answers with calls with `stop` as well: for a forced tool, by habit, or
            because a gateway says so. Then the calls are dropped and nothing happens.
        """,
        example='if finish_reason == "tool_calls": run(calls)',
        fix="Run the calls that came, whatever the finish reason is.",
        references=(
            "https://github.com/googleapis/python-genai/issues/2868",
            "https://github.com/ollama/ollama/issues/7963",
            "https://github.com/vllm-project/vllm/issues/9209",
        ),
    ),
    Preset(
        name="last-finish-wins",
        clients=(ClientModel(emit="last-tool-calls"),),
        summary="It uses calls only if the last finish reason is `tool_calls`.",
        does="A second finish reason follows, `stop`, and overwrites the first.",
        example="finish = choice.finish_reason ?? finish      // tool_calls, then stop",
        fix="Run the calls that came.",
        references=("https://github.com/RayBytes/ChatMock/issues/114",),
    ),
    Preset(
        name="waits-for-finish",
        clients=(ClientModel(emit="on-finish"),),
        summary="It uses calls only once a finish reason has come.",
        does="""
            Where the stream ends without one, the calls stay in their buffer, and nothing is said.
        """,
        example="if choice.finish_reason: yield from calls.values()",
        fix="Look at the buffer when the stream ends, and report that it was cut.",
        references=(
            "https://github.com/CommandCodeAI/command-code/issues/785",
            "https://github.com/ltmoerdani/opencode-copilot-chat/issues/188",
        ),
    ),
    Preset(
        name="finish-before-deltas",
        clients=(ClientModel(stop="finish-before"),),
        place=10,
        summary="It handles the finish reason before the deltas of the same event.",
        does="""
            Servers may send the last fragment, or the whole call, in the event that has the finish
            reason.
        """,
        example="""
            if finish_reason: break
            for fragment in delta["tool_calls"]: ...
        """,
        fix="Handle the deltas of an event first.",
        references=(
            "https://github.com/docker/docker-agent/issues/2992",
            "https://github.com/ranxianglei/billion-context/issues/432",
        ),
    ),
    Preset(
        name="any-finish-ends",
        clients=(ClientModel(stop="finish"),),
        place=11,
        summary="It stops at the first finish reason that is not null.",
        does='Some servers send `"finish_reason":""`, or `stop`, on every event.',
        example='if choice["finish_reason"] is not None: break',
        fix="Read on to `[DONE]`, and ignore an empty finish reason.",
        references=(
            "https://github.com/adolfousier/opencrabs/issues/1499",
            "https://github.com/BerriAI/litellm/issues/2195",
        ),
    ),
    Preset(
        name="fires-when-arguments-parse",
        clients=(ClientModel(emit="when-parses"),),
        summary="It uses a call as soon as its arguments parse.",
        does="""
            A prefix may parse: `{}` before the real arguments, a number. What follows is ignored. A
            call without arguments never fires.
        """,
        example="""
            try: run(json.loads(call["arguments"]))
            except ValueError: pass
        """,
        fix="Wait for the end of the call.",
        references=("https://github.com/OpenRouterTeam/ai-sdk-provider/issues/489",),
    ),
    Preset(
        name="executes-on-name",
        clients=(ClientModel(emit="at-name"),),
        place=102,
        summary="It uses a call as soon as it has id and name.",
        does="The first fragment has both, and no arguments yet.",
        example="if (call.id && call.name) execute(call)",
        fix="Wait for the end of the call.",
        references=("https://github.com/OpenRouterTeam/ai-sdk-provider/issues/489",),
    ),
    Preset(
        name="choices-unguarded",
        clients=(ClientModel(guard="unguarded"),),
        summary="It expects `choices[0].delta` in every event.",
        does="""
            Events with usage, of a content filter, or with an error have no choices; a delta may be
            null. Reading on throws, and all calls are lost.
        """,
        example='delta = chunk["choices"][0]["delta"]         # IndexError',
        fix="Skip events without choices or delta; look for `error`.",
        references=(
            "https://github.com/awslabs/llmeter/issues/34",
            "https://github.com/BerriAI/litellm/issues/32519",
            "https://github.com/AbanteAI/archive-old-cli-mentat/issues/430",
        ),
    ),
    Preset(
        name="eof-as-success",
        clients=(ClientModel(ending="ignored"),),
        summary="It treats the end of the connection as the end of the answer.",
        does="""
            A stream that was cut ends without a finish reason. The call that is under construction
            is run, or fails to parse.
        """,
        example="""
            for chunk in stream: ...
            run(calls)
        """,
        fix="Run nothing without the terminal event; report a broken stream and try again.",
        references=(
            "https://github.com/openclaw/openclaw/issues/108989",
            "https://github.com/BerriAI/litellm/issues/32159",
            "https://github.com/langchain-ai/langchainjs/issues/11494",
        ),
    ),
    Preset(
        name="text-only-follow-up",
        clients=(ClientModel(calls="ignored"),),
        summary="It reads only the text of a follow-up stream.",
        does="""
            The stream after the tool results is handled by simpler code, which knows no calls. The
            model calls again, and the user sees an empty answer.
        """,
        example='for await (const chunk of followUp) text += chunk.choices[0].delta.content ?? ""',
        fix="Use the same loop for every stream, until one has no calls.",
        references=("https://platform.openai.com/docs/guides/function-calling",),
    ),
)

TEXTS = (
    Preset(
        name="flush-before-closing-tag",
        clients=(ClientModel(tags="flush-early"),),
        summary="It passes on the body of a call before its closing tag has come.",
        does="""
            The parser holds back what may be a tag, and passes on the rest. Inside a call that is
            half a body; what is left of the closing tag follows it: "invalid character '>' after
            top-level value".
        """,
        example="""
            <tool>{"tool_name":"read_file","arguments":{      | passed on as a call
            "path":"a.txt"}}                                  | ...
            </tool>
        """,
        fix="Inside a call pass on nothing until the whole closing tag is there.",
        references=(
            "https://github.com/waybarrios/vllm-mlx/issues/55",
            "https://github.com/lsdefine/GenericAgent/issues/804",
        ),
    ),
    Preset(
        name="tag-within-one-piece",
        clients=(ClientModel(tags="per-chunk"),),
        summary="It looks for tags in each fragment of text by itself.",
        does="A tag or call that goes over two fragments is never found and is shown to the user.",
        example=r"const match = chunk.match(/<tool>(.*)<\/tool>/)",
        fix="Search the text so far.",
        references=("https://github.com/raullenchai/Rapid-MLX/issues/581",),
    ),
    Preset(
        name="rescans-full-text",
        clients=(ClientModel(tags="rescan"),),
        summary="It searches the whole text again with every fragment.",
        does="Calls that were found before are found again, and run again.",
        example="""
            text += chunk
            for match in pattern.findall(text): run(match)
        """,
        fix="Remember where the last call ended.",
        references=("https://github.com/rynfar/meridian/issues/73",),
    ),
    Preset(
        name="braces-counted-in-strings",
        clients=(ClientModel(tags="braces"),),
        summary="It counts braces in strings, too.",
        does="A brace in a string ends the call early, or never.",
        example='depth += c == "{"; depth -= c == "}"',
        fix="Let a JSON parser find the end.",
        references=(
            "https://github.com/ollama/ollama/issues/16937",
            "https://github.com/NVIDIA/TensorRT-LLM/issues/19228",
        ),
    ),
    Preset(
        name="first-text-call-only",
        clients=(ClientModel(tags="first-call"),),
        summary="It finds only the first call of a text.",
        does="A second call is not looked for, and is shown to the user.",
        example='if "</tool_call>" in seen: return',
        fix="Continue the search after the closing tag.",
        references=("https://github.com/vllm-project/vllm/issues/31207",),
    ),
    Preset(
        name="reasoning-scanned",
        clients=(ClientModel(tags="reasoning"),),
        summary="It looks for calls in the reasoning.",
        does="A model that thinks about a call has not made it.",
        example="find_calls(delta.reasoning_content)",
        fix="Search the text only.",
        references=(
            "https://github.com/MoonshotAI/Kimi-K2/issues/89",
            "https://github.com/lmstudio-ai/lmstudio-bug-tracker/issues/1592",
        ),
    ),
)

BYTES = (
    Preset(
        name="split-on-network-read",
        clients=(ClientModel(framing="reads"),),
        place=13,
        summary="It treats each network read as whole lines.",
        does="""
            A read ends anywhere, also inside a line: half a line is not JSON, or does not begin
            with `data: `.
        """,
        example=(
            "for await (const chunk of body)\n"
            r'  for (const line of chunk.split("\n"))'
            ' if (line.startsWith("data: ")) JSON.parse(line.slice(6))'
        ),
        fix="Keep what follows the last line end, and put it in front of the next read.",
        references=(
            "https://github.com/clidey/whodb/issues/972",
            "https://github.com/ai-forever/gigachat-js/issues/14",
            "https://github.com/spiceai/spiceai/issues/12588",
        ),
    ),
    Preset(
        name="one-event-per-read",
        clients=(ClientModel(framing="one-per-read"),),
        summary="It takes one event from each network read.",
        does="""
            A read often brings several events; all but the first are lost. It works on a fast
            network and fails on a slow one, or the other way round.
        """,
        example=r'const data = JSON.parse(chunk.replace("data: ", "").split("\n")[0])',
        fix="Loop over the events of a read.",
        references=(
            "https://html.spec.whatwg.org/multipage/server-sent-events.html",
            "https://github.com/clidey/whodb/issues/972",
        ),
    ),
    Preset(
        name="decode-per-read",
        clients=(ClientModel(decode="reads"), ClientModel(decode="reads-ignore")),
        summary="It decodes each network read by itself.",
        does="""
            A character of several bytes may be cut: it becomes U+FFFD twice, or decoding throws, or
            it is missing where errors are ignored.
        """,
        example="text += chunk.decode()",
        fix="""
            Use an incremental decoder: `TextDecoder` with `stream: true`,
            `codecs.getincrementaldecoder`.
        """,
        references=(
            "https://github.com/ollama/ollama-js/issues/255",
            "https://github.com/api7/aisix/issues/111",
            "https://github.com/katanemo/plano/issues/980",
        ),
    ),
    Preset(
        name="data-with-space-only",
        clients=(ClientModel(framing="space"),),
        summary="It reads `data: ` only with a space.",
        does="The space is optional in the standard; lines without it are ignored.",
        example='if line.startswith("data: "): ...',
        fix="Strip `data:`, then one space if there is one.",
        references=("https://html.spec.whatwg.org/multipage/server-sent-events.html",),
    ),
    Preset(
        name="blank-lines-without-cr",
        clients=(ClientModel(framing="blank-lines"),),
        summary="It splits events only at two LFs.",
        does="Servers may end lines with CRLF: no event is ever found.",
        example=r'buffer.split("\n\n")',
        fix="End lines at CRLF, LF or CR.",
        references=("https://html.spec.whatwg.org/multipage/server-sent-events.html",),
    ),
    Preset(
        name="every-line-is-json",
        clients=(ClientModel(framing="every-line"),),
        summary="It parses every line as JSON.",
        does="Comments keep connections alive, event lines name the event: neither is JSON.",
        example='json.loads(line.removeprefix("data: "))      # ": OPENROUTER PROCESSING"',
        fix="Parse only data lines.",
        references=(
            "https://github.com/mnfst/llm-gateway/issues/2053",
            "https://github.com/tmc/langchaingo/issues/1350",
            "https://github.com/pfrankov/obsidian-local-gpt/issues/22",
        ),
    ),
)
