"""What torture found as JSON, for programs; the keys are a contract."""

from deltatape.model.torture import Cell, Tortured
from deltatape.render.json_document import document
from deltatape.render.torture import untried


def torture_json(result: Tortured) -> str:
    """`torture --format json`."""
    nothing = untried(result)
    return document(
        passes=result.passes and not nothing,
        problem=f"nothing was tried: {nothing}" if nothing else result.problem,
        printed=result.printed,
        command=list(result.command),
        tapes=list(result.tapes),
        exchanges=list(result.columns),
        unplayed=list(result.idle),
        variations=[
            {"name": row.name, "harmless": row.harmless, "summary": row.summary}
            for row in result.rows
        ],
        cells=[_cell(cell) for cell in result.cells],
        runs=result.runs,
        seconds=round(result.seconds, 3),
    )


def _cell(cell: Cell) -> dict[str, object]:
    return {
        "variation": cell.variation,
        "harmless": cell.harmless,
        "exchange": cell.exchange,
        "verdict": cell.verdict,
        "passes": cell.verdict.passes,
        "why": cell.why,
        "seed": cell.seed,
        "seconds": round(cell.seconds, 3),
        "runs": cell.runs,
        "reproduce": cell.reproduce,
        "tape": cell.kept,
        "printed": cell.printed,
    }
