"""What the schemas of Kubernetes cannot see in deploy/kubernetes: names, labels and ports that refer to each other,
variables and probes that the programs know, grace and drain times, Pod Security "restricted", exit codes.

  manifests_test.py FOLDER_OF_THE_PROGRAMS      (77: skipped, since nothing can be rendered here)
"""
import functools
import os
import re
import subprocess
import sys
import unittest

try:
    import manifests
except ImportError as error:
    print(f"manifests_test: SKIPPED: {error}; apt-get install python3-yaml")
    sys.exit(77)

PROGRAMS = sys.argv.pop() if len(sys.argv) > 1 else os.path.join(manifests.ROOT, "build", "bin")
RENDERED = {}
END_GRACE = 15  # seconds: a daemon that has been let go ends within these
SAVE_TIME = 60  # seconds: for the checkpoint of a coordinator that was stopped
LONGEST_BACK_OFF = 600  # seconds: of a Job before its next pod, which then has to start
DOCS = os.path.join(manifests.ROOT, "docs", "deploy.md")


def all_containers(objects):
    for kind, name, spec, template in manifests.pod_templates(objects):
        for container in template["spec"]["containers"]:
            yield f"{kind} {name}", spec, template, container


@functools.lru_cache(maxsize=None)
def help_of(*command):
    path = os.path.join(PROGRAMS, command[0])
    return subprocess.run([path, *command[1:], "--help"], capture_output=True, text=True, check=True).stdout


def known_variables(program):
    texts = [help_of(program)] if program != "coordinator" else [help_of(program, "train")]
    texts.append(help_of(program, "health"))
    return set(re.findall(r"\(Env:(\w+)\)", "".join(texts)))


def wait_for_lost_servers():
    """Seconds for which a coordinator that is stopped waits for servers that are gone."""
    path = os.path.join(manifests.ROOT, "coordinator", "training", "job_session_directory.cc")
    with open(path, encoding="utf-8") as file:
        return 60 * int(re.search(r"kSavePatience = absl::Minutes\((\d+)\)", file.read())[1])


def value(container, name):
    return next((v.get("value") for v in container.get("env", []) if v["name"] == name), None)


def memory_bytes(quantity):
    number, unit = re.fullmatch(r"(\d+)([KMG]i?)", quantity).groups()
    return int(number) * (1024 if unit.endswith("i") else 1000) ** ("KMG".index(unit[0]) + 1)


class Manifests(unittest.TestCase):
    def each(self):
        for overlay, objects in RENDERED.items():
            with self.subTest(overlay=overlay):
                yield objects

    def find(self, objects, kind):
        return {thing["metadata"]["name"]: thing for thing in objects if thing["kind"] == kind}

    def test_there_are_all_overlays_with_all_roles(self):
        without = {"base", "local", "spot", "on-demand", "jobset"}
        self.assertEqual(set(RENDERED), without | {"cert-manager"} | {f"{name} with certificates" for name in without})
        for objects in self.each():
            roles = {t["metadata"]["labels"]["app.kubernetes.io/component"]
                     for *_, t in manifests.pod_templates(objects)}
            self.assertEqual(roles, {"coordinator", "psserver", "worker"})

    def test_everything_is_in_one_namespace(self):
        for objects in self.each():
            namespaces = self.find(objects, "Namespace")
            self.assertEqual(len(namespaces), 1)
            for thing in objects:
                if thing["kind"] not in ("Namespace", "PersistentVolume"):
                    self.assertIn(thing["metadata"].get("namespace"), namespaces, thing["metadata"]["name"])

    def test_selectors_select_pods_and_services_their_ports(self):
        for objects in self.each():
            pods = [(t["metadata"]["labels"], t) for *_, t in manifests.pod_templates(objects)]

            def selected(labels):
                return [t for have, t in pods if labels and labels.items() <= have.items()]

            for name, service in self.find(objects, "Service").items():
                targets = selected(service["spec"]["selector"])
                self.assertEqual(len(targets), 1, name)
                ports = {p["name"]: p["containerPort"] for p in targets[0]["spec"]["containers"][0]["ports"]}
                for port in service["spec"]["ports"]:
                    self.assertIn(port["targetPort"], ports, name)
                    self.assertEqual(ports[port["targetPort"]], port["port"], "a headless service maps no ports")
            for name, budget in self.find(objects, "PodDisruptionBudget").items():
                self.assertEqual(len(selected(budget["spec"]["selector"]["matchLabels"])), 1, name)
            for name, policy in self.find(objects, "NetworkPolicy").items():
                self.assertEqual(len(selected(policy["spec"]["podSelector"]["matchLabels"])), 3, name)
                allowed = {p["port"] for rule in policy["spec"]["ingress"] for p in rule["ports"]}
                peers = {rule["ports"][0]["port"]: rule["from"] for rule in policy["spec"]["ingress"]}
                # Labels of the job are added to selectors by matchLabels; Prometheus' pods do not have them.
                self.assertEqual(peers[9100], [{"namespaceSelector": {}, "podSelector": {"matchExpressions": [
                    {"key": "app.kubernetes.io/name", "operator": "In", "values": ["prometheus"]}]}}], name)
                self.assertEqual([list(peer) for peer in peers[7000]], [["podSelector"]], name)
                for _, _, _, container in all_containers(objects):
                    self.assertLessEqual({p["containerPort"] for p in container["ports"]}, allowed)
            for kind, name, spec, template in manifests.pod_templates(objects):
                if kind == "StatefulSet":
                    self.assertIn(spec["serviceName"], self.find(objects, "Service"))
                if kind != "Job":
                    self.assertTrue(spec["selector"]["matchLabels"].items() <= template["metadata"]["labels"].items())

    def test_volumes_and_accounts_exist(self):
        for overlay, objects in RENDERED.items():
            secrets = {c["spec"]["secretName"] for c in self.find(objects, "Certificate").values()}
            made_by_hand = {f"muster-{role}-tls" for role in ("coordinator", "psserver", "worker")}
            self.assertEqual(bool(secrets), "cert" in overlay, overlay)
            for where, _, template, container in all_containers(objects):
                volumes = {v["name"]: v for v in template["spec"]["volumes"]}
                self.assertEqual({m["name"] for m in container["volumeMounts"]}, set(volumes), where)
                self.assertIn(template["spec"]["serviceAccountName"], self.find(objects, "ServiceAccount"))
                for volume in volumes.values():
                    if "configMap" in volume:
                        self.assertIn(volume["configMap"]["name"], self.find(objects, "ConfigMap"), where)
                    if "persistentVolumeClaim" in volume:
                        claim = volume["persistentVolumeClaim"]["claimName"]
                        self.assertIn(claim, self.find(objects, "PersistentVolumeClaim"), where)
                    if "secret" in volume:
                        self.assertIn(volume["secret"]["secretName"], secrets or made_by_hand, where)
            for claim in self.find(objects, "PersistentVolumeClaim").values():
                if claim["spec"].get("volumeName"):
                    volume = self.find(objects, "PersistentVolume")[claim["spec"]["volumeName"]]
                    self.assertEqual(claim["spec"]["accessModes"], volume["spec"]["accessModes"])

    def test_variables_are_flags_of_the_program(self):
        for objects in self.each():
            for where, _, _, container in all_containers(objects):
                program = container["command"][0]
                known = known_variables(program)
                self.assertTrue(known)
                names = [variable["name"] for variable in container["env"]]
                self.assertEqual(len(names), len(set(names)), f"{where}: one is there twice")
                for name in names:
                    if name.startswith("MUSTER_"):
                        self.assertIn(name, known, where)
                for i, variable in enumerate(container["env"]):
                    for used in re.findall(r"\$\((\w+)\)", variable.get("value", "")):
                        self.assertIn(used, names[:i], f"{where}: {used} must come before {variable['name']}")
                for argument in container["command"][1:]:
                    if argument.startswith("--"):
                        self.assertIn(argument.split("=")[0], help_of(*container["command"][:2]), where)

    def test_daemons_call_the_coordinator_by_its_service(self):
        for objects in self.each():
            services = {f"{name}:{port['port']}" for name, service in self.find(objects, "Service").items()
                        for port in service["spec"]["ports"]}
            for where, _, _, container in all_containers(objects):
                program = container["command"][0]
                listen = value(container, f"MUSTER_{program.upper()}_LISTEN")
                self.assertEqual(listen, f"0.0.0.0:{container['ports'][0]['containerPort']}", where)
                http = value(container, f"MUSTER_{program.upper()}_HTTP")
                self.assertEqual(http, f"0.0.0.0:{container['ports'][1]['containerPort']}", where)
                if program != "coordinator":
                    self.assertIn(value(container, f"MUSTER_{program.upper()}_COORDINATOR"), services, where)

    def test_probes_ask_what_the_daemons_answer(self):
        for objects in self.each():
            for where, _, _, container in all_containers(objects):
                port = container["ports"][0]["containerPort"]
                live = [container["command"][0], "health", f"127.0.0.1:{port}"]
                self.assertEqual(container["livenessProbe"]["exec"]["command"], live + ["--service=live"], where)
                self.assertEqual(container["startupProbe"]["exec"]["command"], live + ["--service=live"], where)
                self.assertEqual(container["readinessProbe"]["exec"]["command"], live, where)

    def test_grace_suffices_for_the_end(self):
        for objects in self.each():
            for where, _, template, container in all_containers(objects):
                program = container["command"][0]
                grace = template["spec"]["terminationGracePeriodSeconds"]
                if program == "coordinator":
                    self.assertGreaterEqual(grace, wait_for_lost_servers() + SAVE_TIME, where)
                    continue
                drain = float(value(container, f"MUSTER_{program.upper()}_DRAIN_TIMEOUT") or 25)
                self.assertGreaterEqual(grace, drain + END_GRACE, where)

    def test_daemons_wait_longer_than_a_job_does_before_its_next_pod(self):
        for objects in self.each():
            for where, _, _, container in all_containers(objects):
                program = container["command"][0]
                if program != "coordinator":
                    patience = float(value(container, f"MUSTER_{program.upper()}_ORPHAN_TIMEOUT"))
                    self.assertGreaterEqual(patience, 1.5 * LONGEST_BACK_OFF, where)

    def test_jobs_of_a_jobset_have_what_its_defaults_would_spoil(self):
        jobs = {name: spec for kind, name, spec, _ in manifests.pod_templates(RENDERED["jobset"])}
        self.assertEqual(set(jobs), {"muster-coordinator", "muster-psserver", "muster-worker"})
        for name, spec in jobs.items():
            self.assertIn(spec.get("completionMode"), ("Indexed", "NonIndexed"), f"{name}: JobSet makes it Indexed")
            if spec["completionMode"] == "Indexed":
                self.assertIn("completions", spec, f"{name}: the API refuses an indexed Job without")
            self.assertEqual(spec["template"]["spec"].get("restartPolicy"), "Never", name)
        self.assertNotIn("completions", jobs["muster-worker"], "their number may change")

    def test_servers_end_with_an_error_before_the_kernel_ends_them(self):
        for objects in self.each():
            servers = [c for *_, c in all_containers(objects) if c["command"] == ["psserver"]]
            self.assertTrue(servers)
            for server in servers:
                values = float(value(server, "MUSTER_PSSERVER_MEMORY_LIMIT")) * 1e6
                remembered = float(value(server, "MUSTER_PSSERVER_APPLIED_MEMORY") or 896) * 1e6
                # docs/deploy.md, sizing: half as much again as the values, and what remembering updates takes.
                self.assertLess(values * 1.5 + remembered, memory_bytes(server["resources"]["limits"]["memory"]))

    def test_workers_fail_a_step_before_the_kernel_ends_them(self):
        for objects in self.each():
            workers = [c for *_, c in all_containers(objects) if c["command"] == ["worker"]]
            self.assertTrue(workers)
            for worker in workers:
                limit = float(value(worker, "MUSTER_WORKER_MEMORY_LIMIT")) * 2 ** 20
                # docs/deploy.md, sizing: tensors, a lease, leases read ahead, and what the program itself takes.
                self.assertLess(2 * limit + 512 * 2 ** 20 + 2e8, memory_bytes(worker["resources"]["limits"]["memory"]))

    def test_pod_security_restricted(self):
        for objects in self.each():
            for namespace in self.find(objects, "Namespace").values():
                self.assertEqual(namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"], "restricted")
            for where, _, template, container in all_containers(objects):
                pod, own = template["spec"], container["securityContext"]
                self.assertEqual(len(pod["containers"]), 1, where)
                self.assertTrue(pod["securityContext"]["runAsNonRoot"], where)
                self.assertGreater(pod["securityContext"]["runAsUser"], 0, where)
                self.assertEqual(pod["securityContext"]["seccompProfile"]["type"], "RuntimeDefault", where)
                self.assertIs(own["allowPrivilegeEscalation"], False, where)
                self.assertIs(own["readOnlyRootFilesystem"], True, where)
                self.assertEqual(own["capabilities"], {"drop": ["ALL"]}, where)
                self.assertFalse({"hostNetwork", "hostPID", "hostIPC"} & set(pod), where)
                for volume in pod["volumes"]:
                    kinds = set(volume) - {"name"}
                    self.assertLessEqual(kinds, {"configMap", "secret", "emptyDir", "persistentVolumeClaim"}, where)
                self.assertIn("memory", container["resources"]["limits"], where)
                self.assertIs(pod["automountServiceAccountToken"], False, where)

    def test_exit_codes_have_the_outcomes_that_the_docs_promise(self):
        for objects in self.each():
            for kind, name, spec, template in manifests.pod_templates(objects):
                role, policy = template["metadata"]["labels"]["app.kubernetes.io/component"], spec.get("podFailurePolicy")
                if kind != "Job":
                    self.assertIn((kind, role), (("StatefulSet", "psserver"), ("Deployment", "worker")))
                    self.assertEqual(spec.get("podManagementPolicy", "Parallel"), "Parallel")
                    self.assertNotIn("podFailurePolicy", spec)
                    continue
                self.assertEqual(template["spec"]["restartPolicy"], "Never", "policies need that")
                outcome = {code: manifests.after_exit(kind, policy, code) for code in (0, 2, 3, 4, 5, 130, 137, 143)}
                self.assertEqual(outcome[0], "Complete")
                # One worker of many may have wrong settings: the others go on.
                self.assertEqual(outcome[2], "Count" if role == "worker" else "FailJob", f"{name}: wrong input")
                self.assertEqual({outcome[4], outcome[137]}, {"Count"}, f"{name}: machines failed")
                self.assertEqual(manifests.after_exit(kind, policy, 137, disrupted=True), "Ignore", name)
                if role == "coordinator":
                    self.assertEqual(outcome[3], "FailJob", "the user's function failed")
                    self.assertEqual({outcome[5], outcome[130], outcome[143]}, {"Count"})
                else:
                    code = value(template["spec"]["containers"][0], f"MUSTER_{role.upper()}_DRAINED_EXIT_CODE")
                    self.assertEqual(code, "143", f"{name}: 0 would be the end of the work")
                    self.assertEqual(outcome[143], "Ignore", f"{name}: it is replaced")

    def test_servers_have_an_index_of_their_own(self):
        for objects in self.each():
            for kind, name, spec, template in manifests.pod_templates(objects):
                container = template["spec"]["containers"][0]
                if container["command"][0] != "psserver":
                    continue
                index = next(v for v in container["env"] if v["name"] == "MUSTER_PSSERVER_INDEX")
                path = index["valueFrom"]["fieldRef"]["fieldPath"]
                if kind == "StatefulSet":
                    count = spec["replicas"]
                    self.assertIn("apps.kubernetes.io/pod-index", path)
                else:
                    count = spec["completions"]
                    self.assertEqual(spec["completionMode"], "Indexed")
                    self.assertEqual(spec["parallelism"], count, "all at once")
                    self.assertIn("batch.kubernetes.io/job-completion-index", path)
                coordinator = next(c for _, _, _, c in all_containers(objects) if c["command"][0] == "coordinator")
                self.assertEqual(value(coordinator, "MUSTER_COORDINATOR_PS"), str(count), name)

    def test_drains_of_nodes_are_not_blocked(self):
        for objects in self.each():
            for budget in self.find(objects, "PodDisruptionBudget").values():
                self.assertEqual(budget["spec"]["unhealthyPodEvictionPolicy"], "AlwaysAllow")
                self.assertEqual(budget["spec"]["maxUnavailable"], 1)

    def test_only_workers_of_spot_run_on_nodes_that_vanish(self):
        for overlay in ("on-demand", "spot"):
            for kind, name, _, template in manifests.pod_templates(RENDERED[overlay]):
                vanishes = overlay == "spot" and name == "muster-worker"
                pod = template["spec"]
                affinity = pod["affinity"]["nodeAffinity"]
                self.assertEqual("requiredDuringSchedulingIgnoredDuringExecution" in affinity, not vanishes, f"{overlay}: {name}")
                tolerated = {toleration["key"] for toleration in pod.get("tolerations", [])}
                self.assertEqual("cloud.google.com/gke-spot" in tolerated, vanishes, f"{overlay}: {name}")

    def test_the_folder_of_ones_own_in_the_docs_renders(self):
        with open(DOCS, encoding="utf-8") as file:
            text = re.search(r"```yaml\n(# kustomization.yaml\n.*?)```", file.read(), re.DOTALL)[1]
        objects = manifests.render_own(text, {"job.yaml": "name: mine\n"})
        self.assertEqual(self.find(objects, "ConfigMap")["muster-job"]["data"], {"job.yaml": "name: mine\n"})
        self.assertTrue(self.find(objects, "Certificate"))
        for where, _, _, container in all_containers(objects):
            self.assertEqual(container["image"], "registry.example/muster:0.1.0", where)
            if container["command"][0] == "coordinator":
                self.assertEqual(value(container, "MUSTER_COORDINATOR_JOB_DIR"), "/checkpoints/clicks")

    def test_the_command_in_the_docs_waits_for_either_end(self):
        with open(DOCS, encoding="utf-8") as file:
            command = re.search(r"^until kubectl .*?^kubectl[^\n]*delete[^\n]*", file.read(), re.DOTALL | re.MULTILINE)[0]
        for condition in ("complete", "failed"):
            # A kubectl whose second round finds the Job so.
            fake = f"""rounds=0; function sleep {{ rounds=1; }}
                kubectl() {{ case "$*" in *wait*job/muster-coordinator*condition={condition}*) ((rounds == 1)) ;;
                                          *wait*) false ;; *) echo "$*" ;; esac; }}\n"""
            done = subprocess.run(["bash", "-c", fake + command], capture_output=True, text=True, timeout=10)
            self.assertEqual(done.stdout.split(), ["-n", "muster", "delete", "statefulset/muster-psserver",
                                                   "deployment/muster-worker"], condition)
        for objects in (objects for overlay, objects in RENDERED.items() if "jobset" not in overlay):
            restarted = {f"{kind.lower()}/{name}" for kind, name, *_ in manifests.pod_templates(objects) if kind != "Job"}
            self.assertEqual(restarted, {"statefulset/muster-psserver", "deployment/muster-worker"})

    def test_certificates_are_of_roles(self):
        certificates = self.find(RENDERED["cert-manager"], "Certificate")
        for role in ("coordinator", "psserver", "worker"):
            spec = certificates[f"muster-{role}"]["spec"]
            self.assertEqual(spec["dnsNames"], [f"{role}.muster"])
            self.assertLessEqual({"server auth", "client auth"}, set(spec["usages"]))


class AfterExit(unittest.TestCase):
    POLICY = {"rules": [{"action": "FailJob", "onExitCodes": {"operator": "In", "values": [2]}},
                        {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]},
                        {"action": "FailJob", "onExitCodes": {"operator": "NotIn", "values": [4, 137]}}]}

    def test_the_first_rule_that_matches_decides(self):
        for code, disrupted, action in ((0, True, "Complete"), (2, True, "FailJob"), (7, True, "Ignore"),
                                        (7, False, "FailJob"), (4, False, "Count"), (137, True, "Ignore")):
            self.assertEqual(manifests.after_exit("Job", self.POLICY, code, disrupted), action, code)
        self.assertEqual(manifests.after_exit("Job", None, 2), "Count")
        self.assertEqual(manifests.after_exit("Deployment", None, 0), "Restart")


if __name__ == "__main__":
    missing = manifests.why_not()
    if missing:
        print(f"manifests_test: SKIPPED: {missing}")
        sys.exit(77)
    component = os.path.relpath(manifests.CERTIFICATES, manifests.ROOT)
    for overlay in manifests.OVERLAYS:
        RENDERED[overlay] = manifests.render(overlay)
        if overlay != "cert-manager":
            RENDERED[f"{overlay} with certificates"] = manifests.render_own(
                f"resources: [PATH/deploy/kubernetes/{overlay}]\ncomponents: [PATH/{component}]\n")
    unittest.main()
