#!/usr/bin/env python3
"""Makes of a rendered overlay what `podman play kube` takes: a Pod for each pod that Jobs, StatefulSets and Deployments
would make, and the ConfigMaps. Image, command, arguments, environment, volumes, security context and probes stay as they are, but for
what the kubelet would have put in their place:

  - a pod's address is its name, which the network of the containers knows; the coordinator's is its Service's name
  - `$(NAME)` in a variable's value, and labels and annotations that controllers set, have their values
  - a Secret is a volume of the same name and an emptyDir one of the pod's name and its own, filled and given to the
    user beforehand, as claims of volumes are: podman reads Secrets in another way and knows no fsGroup
  - ports, which are a remark in Kubernetes, are left out: podman would open them on the host
  - what ends is not started again: that is for whoever plays the controller

  kube_pods.py OVERLAY DIR [--workers=N] [--env ROLE NAME=VALUE]...    one file for each pod: DIR/NAME.yaml
  kube_pods.py OVERLAY --after ROLE EXIT_CODE                          what happens after this exit code
"""
import copy
import os
import re
import sys

import yaml

import manifests

INDEX = ("apps.kubernetes.io/pod-index", "batch.kubernetes.io/job-completion-index")


def role_of(template):
    return template["metadata"]["labels"]["app.kubernetes.io/component"]


def resolved(env, name, metadata):
    """The variables as the container sees them."""
    values = {}
    for variable in env:
        text = variable.get("value")
        if text is None:
            path = variable["valueFrom"]["fieldRef"]["fieldPath"]
            keyed = re.fullmatch(r"metadata\.(labels|annotations)\['([^']+)'\]", path)
            text = metadata[keyed[1]][keyed[2]] if keyed else {"status.podIP": name, "metadata.name": name}[path]
        values[variable["name"]] = re.sub(r"\$\((\w+)\)", lambda found: values.get(found[1], found[0]), text)
    return [{"name": key, "value": text} for key, text in values.items()]


def pod(name, template, index, more_env):
    made = copy.deepcopy(template)
    metadata = made["metadata"]
    metadata["name"] = name
    for kind in ("labels", "annotations"):
        metadata.setdefault(kind, {}).update({key: str(index) for key in INDEX})
    made["spec"]["restartPolicy"] = "Never"
    for container in made["spec"]["containers"]:
        container["env"] = resolved(container["env"] + more_env, name, metadata)
        del container["ports"]  # podman would open them on the host
    for volume in made["spec"]["volumes"]:
        if "secret" in volume:
            volume["persistentVolumeClaim"] = {"claimName": volume.pop("secret")["secretName"]}
        if volume.pop("emptyDir", None) is not None:
            volume["persistentVolumeClaim"] = {"claimName": f"{name}-{volume['name']}"}
    return {"apiVersion": "v1", "kind": "Pod", **made}


def pods_of(objects, workers=None, env=()):
    """(name, documents) for each pod; `env`: (role, NAME=VALUE) pairs that are added."""
    maps = [{key: thing[key] for key in ("apiVersion", "kind", "data")} | {"metadata": {"name": thing["metadata"]["name"]}}
            for thing in objects if thing["kind"] == "ConfigMap"]
    for kind, name, spec, template in manifests.pod_templates(objects):
        role = role_of(template)
        count = spec["parallelism"] if kind == "Job" else spec["replicas"]
        if role == "worker" and workers is not None:
            count = workers
        added = [dict(zip(("name", "value"), text.split("=", 1))) for of, text in env if of == role]
        used = {v["configMap"]["name"] for v in template["spec"]["volumes"] if "configMap" in v}
        for i in range(count):
            own = "muster-coordinator" if role == "coordinator" else f"muster-{role}-{i}"
            yield own, [m for m in maps if m["metadata"]["name"] in used] + [pod(own, template, i, added)]


def main(arguments):
    if len(arguments) == 4 and arguments[1] == "--after":
        for kind, _, spec, template in manifests.pod_templates(manifests.render(arguments[0])):
            if role_of(template) == arguments[2]:
                print(manifests.after_exit(kind, spec.get("podFailurePolicy"), int(arguments[3])))
                return 0
        return 2
    workers, env, places = None, [], []
    rest = iter(arguments)
    for argument in rest:
        if argument.startswith("--workers="):
            workers = int(argument.partition("=")[2])
        elif argument == "--env":
            env.append((next(rest), next(rest)))
        else:
            places.append(argument)
    if len(places) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    overlay, directory = places
    for name, documents in pods_of(manifests.render(overlay), workers, env):
        with open(os.path.join(directory, f"{name}.yaml"), "w", encoding="utf-8") as file:
            yaml.safe_dump_all(documents, file, sort_keys=False)
        print(name)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
