"""The fields of Kubernetes objects that our manifests may have, as JSON schemas: other names are refused.

Of KubeRay those of `RayCluster` and `RayJob` of ray.io/v1 (ray-operator/apis/ray/v1/*_types.go); of pods the ones that
are used here.
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
AMOUNTS = thing(cpu=TEXT, memory=TEXT)
SECRET = thing("secretKeyRef", secretKeyRef=thing("name", "key", name=TEXT, key=TEXT))
ENV = thing("name", name=TEXT, value=TEXT, valueFrom=SECRET)
AUTH = thing("mode", mode={"enum": ["token"]}, secretName=TEXT)
PORT = thing("containerPort", containerPort=NUMBER, name=TEXT)
MOUNT = thing("name", "mountPath", name=TEXT, mountPath=TEXT)
CONTAINER = thing(
    "name", "image", "resources",
    name=TEXT, image=TEXT, env=many(ENV), ports=many(PORT), volumeMounts=many(MOUNT),
    resources=thing("requests", "limits", requests=AMOUNTS, limits=AMOUNTS),
)  # fmt: skip
VOLUME = thing("name", name=TEXT, persistentVolumeClaim=thing("claimName", claimName=TEXT))
POD = thing(
    "containers",
    containers=many(CONTAINER, 1), volumes=many(VOLUME), automountServiceAccountToken=FLAG,
    restartPolicy={"enum": ["Never", "OnFailure"]},
    securityContext=thing(runAsNonRoot=FLAG, runAsUser=NUMBER, fsGroup=NUMBER),
)  # fmt: skip
TEMPLATE = thing("spec", metadata=thing(labels=TEXTS), spec=POD)

HEAD = thing(
    "rayStartParams", "template",
    serviceType={"enum": ["ClusterIP"]}, headService={}, enableIngress=FLAG, rayStartParams=TEXTS, template=TEMPLATE,
)  # fmt: skip
WORKERS = thing(
    "groupName", "minReplicas", "maxReplicas", "rayStartParams", "template",
    groupName=TEXT, replicas=NUMBER, minReplicas=NUMBER, maxReplicas=NUMBER, numOfHosts=NUMBER, rayStartParams=TEXTS,
    template=TEMPLATE, scaleStrategy={},
)  # fmt: skip
CLUSTER = thing(
    "headGroupSpec", "authOptions", "rayVersion",
    authOptions=AUTH, headGroupSpec=HEAD, workerGroupSpecs=many(WORKERS), rayVersion=TEXT, enableInTreeAutoscaling=FLAG,
    autoscalerOptions={}, headServiceAnnotations=TEXTS, suspend=FLAG,
)  # fmt: skip
JOB = thing(
    "entrypoint",
    activeDeadlineSeconds=NUMBER, backoffLimit=NUMBER, rayClusterSpec=CLUSTER, submitterPodTemplate=TEMPLATE,
    metadata=TEXTS, clusterSelector=TEXTS, submitterConfig={}, entrypoint=TEXT, runtimeEnvYAML=TEXT, jobId=TEXT,
    submissionMode={"enum": ["K8sJobMode", "HTTPMode", "InteractiveMode"]}, entrypointResources=TEXT,
    ttlSecondsAfterFinished=NUMBER, shutdownAfterJobFinishes=FLAG, suspend=FLAG,
)  # fmt: skip
SELECTOR = thing("matchLabels", matchLabels=TEXTS)
PEER = thing(podSelector=SELECTOR, namespaceSelector=SELECTOR)
RULE = thing("from", ports=many(thing("port", port=NUMBER, protocol=TEXT)), **{"from": many(PEER, 1)})
POLICY = thing("podSelector", "policyTypes", podSelector=SELECTOR, policyTypes=many(TEXT), ingress=many(RULE))


def kind(version: str, spec: dict[str, Any]) -> dict[str, Any]:
    about = {"apiVersion": {"const": version}, "kind": TEXT, "metadata": METADATA, "spec": spec}
    return thing(*about, **about)


KINDS = {
    "RayCluster": kind("ray.io/v1", CLUSTER),
    "RayJob": kind("ray.io/v1", JOB),
    "NetworkPolicy": kind("networking.k8s.io/v1", POLICY),
}
"""The schema of each kind of object."""
