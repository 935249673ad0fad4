"""Releases of OpenVINO as targets: which operations each has, and what each is known to refuse."""

from irrun.targets.check import check_targets
from irrun.targets.releases import RELEASES, Target, first_release, has_operation, newest_opset, parse_target

__all__ = ["RELEASES", "Target", "check_targets", "first_release", "has_operation", "newest_opset", "parse_target"]
