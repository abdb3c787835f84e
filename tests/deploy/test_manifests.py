"""The files in deploy/ against their schemas, without a cluster: what Ray's own schema and KubeRay's types know."""

from __future__ import annotations

import copy
import json
import re
import shlex
import tomllib
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from p2p_sim import cli as program
from tests.deploy.fields import KINDS

DEPLOY = Path(__file__).parents[2] / "deploy"
MANIFESTS = sorted((DEPLOY / "kuberay").glob("*.yaml"))


def of(name: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((DEPLOY / name).read_text())
    return found


def ray_schema() -> dict[str, Any]:
    import ray.autoscaler

    found: dict[str, Any] = json.loads(Path(ray.autoscaler.__path__[0], "ray-schema.json").read_text())
    return found


def clusters() -> list[dict[str, Any]]:
    job: dict[str, Any] = of("kuberay/job.yaml")["spec"]["rayClusterSpec"]
    return [of("kuberay/cluster.yaml")["spec"], job]


def pods(spec: dict[str, Any]) -> list[dict[str, Any]]:
    return [group["template"] for group in (spec["headGroupSpec"], *spec["workerGroupSpecs"])]


def test_ray_up_fits_the_schema_of_ray() -> None:
    from ray.autoscaler._private.util import prepare_config

    cluster = of("ray-up.yaml")
    jsonschema.validate(cluster, ray_schema())
    filled = prepare_config(copy.deepcopy(cluster))  # as `ray up` does
    jsonschema.validate(filled, ray_schema())
    assert filled["max_workers"] == len(cluster["provider"]["worker_ips"])
    with pytest.raises(jsonschema.ValidationError, match="head_start"):
        jsonschema.validate(cluster | {"head_start": []}, ray_schema())


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.name)
def test_manifests_have_the_fields_of_their_kind(path: Path) -> None:
    manifest = yaml.safe_load(path.read_text())
    jsonschema.validate(manifest, KINDS[manifest["kind"]])
    wrong = copy.deepcopy(manifest)
    wrong["spec"]["headGroupSpecs"] = {}
    with pytest.raises(jsonschema.ValidationError, match="headGroupSpecs"):
        jsonschema.validate(wrong, KINDS[manifest["kind"]])


def test_every_process_of_ray_asks_for_the_token() -> None:
    """A cluster without it runs the code of anybody who reaches its ports."""
    for cluster in clusters():
        assert cluster["authOptions"] == {"mode": "token"}  # KubeRay makes one: none is in a file
        assert tuple(map(int, cluster["rayVersion"].split(".")[:2])) >= (2, 52)  # the first with tokens
    cluster = of("ray-up.yaml")
    for part in ("head_start_ray_commands", "worker_start_ray_commands"):
        assert all(command.startswith("RAY_AUTH_MODE=token ") for command in cluster[part])
    assert "~/.ray/auth_token" in cluster["file_mounts"]
    assert "RAY_AUTH_MODE=token" in (DEPLOY / "Dockerfile").read_text()


def test_nothing_is_public() -> None:
    policy = of("kuberay/network-policy.yaml")["spec"]
    mine = {"app": "p2p-sim"}
    assert policy["podSelector"]["matchLabels"] == mine
    assert policy["policyTypes"] == ["Ingress"]
    assert all("from" in rule for rule in policy["ingress"])
    submitter = of("kuberay/job.yaml")["spec"]["submitterPodTemplate"]
    for cluster in clusters():
        assert cluster["headGroupSpec"]["serviceType"] == "ClusterIP"
        for pod in (*pods(cluster), submitter):
            assert pod["metadata"]["labels"] == mine  # or the policy would not hold for it
            assert pod["spec"]["automountServiceAccountToken"] is False
            assert pod["spec"]["securityContext"]["runAsNonRoot"] is True
    assert started("head")["dashboard-host"] == "127.0.0.1"


def started(kind: str) -> dict[str, str]:
    """Return the options of `ray start` on the head or on a worker."""
    (start,) = (each for each in of("ray-up.yaml")[f"{kind}_start_ray_commands"] if " start " in each)
    return dict(re.findall(r"--([a-z-]+)(?:=(\S+))?", start))


PORTS = {
    "node-manager-port", "object-manager-port", "dashboard-agent-grpc-port", "dashboard-agent-listen-port",
    "runtime-env-agent-port", "metrics-export-port", "min-worker-port", "max-worker-port",
}  # fmt: skip
"""What every node listens at, by the options of `ray start`."""


def test_no_port_is_left_to_chance() -> None:
    from ray.scripts.scripts import start

    known = {word.removeprefix("--") for option in start.params for word in option.opts}
    of_head = {"port", "dashboard-port", "ray-client-server-port"}
    assert {name for name in known if re.search(r"port(-list)?$", name)} == PORTS | of_head | {
        "worker-port-list"
    }
    head, worker = started("head"), started("worker")
    assert head.keys() | worker.keys() <= known
    ports = {name: worker[name] for name in PORTS}
    assert {name: head[name] for name in PORTS} == ports
    for cluster in clusters():
        for group in (cluster["headGroupSpec"], *cluster["workerGroupSpecs"]):
            assert {name: group["rayStartParams"][name] for name in PORTS} == ports
            assert group["rayStartParams"].keys() <= known


def test_the_table_of_ports_is_whole() -> None:
    text = (DEPLOY.parent / "docs" / "deployment.md").read_text()
    rows = re.findall(r"^\| ([0-9 to]+) \|.*\| (`--.*) \|$", text, re.MULTILINE)
    told = {}
    for numbers, options in rows:
        names = [name for name in re.findall(r"--([a-z-]+)", options) if name != "dashboard-host"]
        told |= dict(zip(names, numbers.split(" to "), strict=True))
    head = started("head")
    given = {name: head[name] for name in (*PORTS, "port", "dashboard-port")}
    assert told == given | {
        "ray-client-server-port": "10001"
    }  # Ray's own: without ray[client] it may not be given


def test_versions_agree() -> None:
    """Every file installs the same Ray, and the wheel is that of this version."""
    docker, up = (DEPLOY / "Dockerfile").read_text(), (DEPLOY / "ray-up.yaml").read_text()
    docs = (DEPLOY.parent / "docs" / "deployment.md").read_text()
    asked = [re.findall(r"ray\[default\](?:==([\d.]+\d))?[\"']", text) for text in (docker, up, docs)]
    assert all(asked)
    assert {version for each in asked for version in each} == {each["rayVersion"] for each in clusters()}
    version = tomllib.loads((DEPLOY.parent / "pyproject.toml").read_text())["project"]["version"]
    assert set(re.findall(r"p2p_sim-(.+?)-py3-none-any\.whl", up)) == {version}


def test_the_job_is_a_command_of_ours(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = shlex.split(of("kuberay/job.yaml")["spec"]["entrypoint"])
    assert words[:1] == ["p2p-sim"]
    at = words.index("--out") + 1
    assert words[at].startswith("/runs/")
    words[at] = str(tmp_path / "run")
    assert program.main([*words[1:], "--plan"]) == 0
    assert "Plan for 100,000,000 users, backend shards" in capsys.readouterr().out


def test_shards_share_the_folder_of_runs() -> None:
    for pod in (pod["spec"] for cluster in clusters() for pod in pods(cluster)):
        assert [volume["persistentVolumeClaim"]["claimName"] for volume in pod["volumes"]] == ["p2p-sim-runs"]
        mounts = [
            mount["mountPath"] for container in pod["containers"] for mount in container["volumeMounts"]
        ]
        assert mounts == ["/runs"]


def test_the_dockerfile_installs_what_is_there() -> None:
    text = (DEPLOY / "Dockerfile").read_text()
    for copied in re.findall(r"^COPY (.+) /src/?\S*$", text, re.MULTILINE):
        for name in copied.split():
            assert (DEPLOY.parent / name).exists(), name
    assert re.search(r"^USER (?!root)", text, re.MULTILINE)
