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
import kubernetes_validate
import pytest
import yaml

from p2p_sim import cli as program
from tests.deploy.fields import KINDS

DEPLOY = Path(__file__).parents[2] / "deploy"
MANIFESTS = sorted((DEPLOY / "kuberay").glob("*.yaml"))
KUBERNETES = "1.34"
"""The version whose schemas pods and policies are held to."""


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
    """Return the templates of the pods of a cluster, or of a job."""
    cluster = spec.get("rayClusterSpec", spec)
    found = [group["template"] for group in (cluster["headGroupSpec"], *cluster["workerGroupSpecs"])]
    return found + ([spec["submitterPodTemplate"]] if "submitterPodTemplate" in spec else [])


def test_ray_up_fits_the_schema_of_ray() -> None:
    from ray.autoscaler._private.util import prepare_config

    cluster = of("ray-up.yaml")
    jsonschema.validate(cluster, ray_schema())
    filled = prepare_config(copy.deepcopy(cluster))  # as `ray up` does
    jsonschema.validate(filled, ray_schema())
    assert filled["max_workers"] == len(cluster["provider"]["worker_ips"])
    with pytest.raises(jsonschema.ValidationError, match="head_start"):
        jsonschema.validate(cluster | {"head_start": []}, ray_schema())


def check(manifest: dict[str, Any]) -> None:
    """Hold an object to its schema; raises ValidationError."""
    if manifest["kind"] in KINDS:
        jsonschema.validate(manifest, KINDS[manifest["kind"]])
        for template in pods(manifest["spec"]):
            meant = {
                "apiVersion": "v1",
                "kind": "PodTemplate",
                "metadata": {"name": "one"},
                "template": template,
            }
            kubernetes_validate.validate(meant, KUBERNETES, strict=True)
    else:
        kubernetes_validate.validate(manifest, KUBERNETES, strict=True)


def test_ray_up_starts_all_machines() -> None:
    """Each line was missing when it was tried for real: then there is a head alone, or one worker, or old code."""
    cluster = of("ray-up.yaml")
    assert started("head")["autoscaling-config"] == "~/ray_bootstrap_config.yaml"
    assert "ssh_private_key" in cluster["auth"]  # with which the head reaches the others
    (start,) = (each for each in cluster["head_start_ray_commands"] if " start " in each)
    assert " RAY_enable_autoscaler_v2=0 " in start  # the newer one counts the head as a worker
    setup = " ".join(cluster["setup_commands"])
    assert re.search(r"pip install --no-deps --force-reinstall ~/p2p_sim-\S+\.whl", setup)
    assert (
        """'export PATH="$HOME/p2p-sim/bin:$PATH" RAY_AUTH_MODE=token""" in setup
    )  # for ray exec and ray down


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.name)
def test_manifests_fit_their_schemas(path: Path) -> None:
    manifest = yaml.safe_load(path.read_text())
    check(manifest)
    wrong = copy.deepcopy(manifest)
    wrong["spec"]["headGroupSpecs"] = {}
    with pytest.raises(jsonschema.ValidationError, match="headGroupSpecs"):
        check(wrong)


def test_every_pod_is_held_to_the_schema_of_kubernetes() -> None:
    for path in MANIFESTS:
        manifest = yaml.safe_load(path.read_text())
        for number in range(len(pods(manifest["spec"])) if manifest["kind"] in KINDS else 0):
            wrong = copy.deepcopy(manifest)
            pods(wrong["spec"])[number]["spec"]["containers"][0]["volumeMount"] = []
            with pytest.raises(jsonschema.ValidationError, match="volumeMount"):
                check(wrong)
            wrong = copy.deepcopy(manifest)
            pods(wrong["spec"])[number]["spec"]["securityContext"] = {"runAsUser": "ray"}
            with pytest.raises(jsonschema.ValidationError, match="'ray' is not of type 'integer'"):
                check(wrong)


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


def test_every_container_says_what_it_takes() -> None:
    """Ray counts what a pod may use; without limits that is all of its machine."""
    for cluster in (*clusters(), of("kuberay/job.yaml")["spec"]):
        for container in (each for pod in pods(cluster) for each in pod["spec"]["containers"]):
            assert container["resources"]["limits"].keys() == {"cpu", "memory"}
            assert container["resources"]["requests"] == container["resources"]["limits"]


def test_the_dockerfile_installs_what_is_there() -> None:
    text = (DEPLOY / "Dockerfile").read_text()
    for copied in re.findall(r"^COPY (.+) /src/?\S*$", text, re.MULTILINE):
        for name in copied.split():
            assert (DEPLOY.parent / name).exists(), name
    assert re.search(r"^USER (?!root)", text, re.MULTILINE)
