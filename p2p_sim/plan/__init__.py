"""What a run will take, before it starts: memory, messages, bytes, disk and time, and whether the machines have it."""

from __future__ import annotations

from p2p_sim.plan.machines import Machine, machines
from p2p_sim.plan.pilot import Crowd
from p2p_sim.plan.run_plan import RunPlan, Saved, Scratch, is_in_doubt, plan_of

__all__ = ["Crowd", "Machine", "RunPlan", "Saved", "Scratch", "is_in_doubt", "machines", "plan_of"]
