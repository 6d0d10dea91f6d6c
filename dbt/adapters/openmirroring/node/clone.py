"""The limits of `dbt clone`, which makes a view of another target's relation."""

from __future__ import annotations

from collections.abc import Callable

from dbt_common.exceptions import CompilationError

from dbt.adapters.openmirroring.node.warehouse import Warehouse
from dbt.adapters.openmirroring.spark.relation import OpenMirroringRelation


def refuse_clone(
    warehouse: Warehouse, target: OpenMirroringRelation, was_published: Callable[[], bool]
) -> None:
    """Check that a clone does not take the place of a mirrored table.

    The next run would see a view, and rebuild the mirrored table with what it can compute: the
    history of an incremental model or a dbt snapshot would be lost in Spark and in the mirror.

    Args:
        target: the relation that the view would replace, or the missing relation of the node
        was_published: returns whether the node is mirrored, and has been published

    Raises:
        CompilationError: if the relation is mirrored
    """
    found = warehouse.found(target)
    if found and found.is_view:
        return
    marks = warehouse.marks(found)
    is_ours = marks.batch_id is not None or marks.held is not None
    if not is_ours and not was_published():
        return
    if found:
        state = "a clone would drop its rows, which may be the only ones with its history"
    else:
        state = "Spark has lost its rows, and a clone would hide that"
    raise CompilationError(
        f"{target} is a mirrored table, and {state}: the next run would rebuild the mirrored "
        "table with what the model computes then. Nothing was changed. Clone into another schema, "
        "or leave this node out with `--exclude`."
    )
