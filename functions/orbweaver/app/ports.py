"""Name the ports that components take: of a stack on AWS, or of an embedded store."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from orbweaver.app.aws_ports import Ports
    from orbweaver.app.store_ports import StorePorts

# Both classes must have every port that a component takes. Type checkers verify this.
PortSet: TypeAlias = "Ports | StorePorts"
