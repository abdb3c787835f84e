"""The fields of KubeRay's objects that our manifests may have, as JSON schemas: other names are refused.

They are those of ``RayCluster`` and ``RayJob`` of ray.io/v1, without what nobody here uses.  Names and types were held
by hand against KubeRay's ray-operator/apis/ray/v1: rayjob_types.go of commit f6ef3f7, and raycluster_types.go of
commit 3275ee0 and of a later one that has ``authOptions``.  What is in a pod, and objects of Kubernetes itself, are
held to Kubernetes' own schemas (kubernetes-validate).
"""

from __future__ import annotations

from typing import Any

TEXT, NUMBER, FLAG = {"type": "string"}, {"type": "integer"}, {"type": "boolean"}


def thing(*required: str, **fields: Any) -> dict[str, Any]:
    return {"type": "object", "required": list(required), "additionalProperties": False, "properties": fields}


def many(each: dict[str, Any], least: int = 0) -> dict[str, Any]:
    return {"type": "array", "items": each, "minItems": least}


TEXTS = {"type": "object", "additionalProperties": TEXT}
METADATA = thing("name", name=TEXT, labels=TEXTS, namespace=TEXT)
AUTH = thing("mode", mode={"enum": ["token"]}, secretName=TEXT)
POD = {"type": "object"}
"""A template of a pod, which Kubernetes' schema knows."""

HEAD = thing(
    "rayStartParams", "template",
    serviceType={"enum": ["ClusterIP"]}, headService={}, enableIngress=FLAG, rayStartParams=TEXTS, template=POD,
)  # fmt: skip
WORKERS = thing(
    "groupName", "minReplicas", "maxReplicas", "rayStartParams", "template",
    groupName=TEXT, replicas=NUMBER, minReplicas=NUMBER, maxReplicas=NUMBER, numOfHosts=NUMBER, rayStartParams=TEXTS,
    template=POD, scaleStrategy={},
)  # fmt: skip
CLUSTER = thing(
    "headGroupSpec", "authOptions", "rayVersion",
    authOptions=AUTH, headGroupSpec=HEAD, workerGroupSpecs=many(WORKERS), rayVersion=TEXT, enableInTreeAutoscaling=FLAG,
    autoscalerOptions={}, headServiceAnnotations=TEXTS, suspend=FLAG,
)  # fmt: skip
JOB = thing(
    "entrypoint",
    activeDeadlineSeconds=NUMBER, backoffLimit=NUMBER, rayClusterSpec=CLUSTER, submitterPodTemplate=POD,
    metadata=TEXTS, clusterSelector=TEXTS, submitterConfig={}, entrypoint=TEXT, runtimeEnvYAML=TEXT, jobId=TEXT,
    submissionMode={"enum": ["K8sJobMode", "HTTPMode", "InteractiveMode"]}, entrypointResources=TEXT,
    ttlSecondsAfterFinished=NUMBER, shutdownAfterJobFinishes=FLAG, suspend=FLAG,
)  # fmt: skip


def kind(spec: dict[str, Any]) -> dict[str, Any]:
    about = {"apiVersion": {"const": "ray.io/v1"}, "kind": TEXT, "metadata": METADATA, "spec": spec}
    return thing(*about, **about)


KINDS = {"RayCluster": kind(CLUSTER), "RayJob": kind(JOB)}
"""The schema of each kind of object of KubeRay."""
