"""The files that deploy: each against the schema of the tool that reads it, and against each other."""

from __future__ import annotations

import fnmatch
import importlib
import itertools
import json
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from pydantic import BaseModel

from marg_ray.models.serving import plan
from marg_ray.settings import RuntimeSettings, ServingSettings, Settings

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
CLUSTER = yaml.safe_load((ROOT / "cluster.yaml").read_text(encoding="utf-8"))
SERVE = yaml.safe_load((DEPLOY / "serve.yaml").read_text(encoding="utf-8"))
COMPOSE = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))
MANIFESTS = list(yaml.safe_load_all((DEPLOY / "rayservice.yaml").read_text(encoding="utf-8")))
(SERVICE,) = (m for m in MANIFESTS if m["kind"] == "RayService")
RAY_CLUSTER = SERVICE["spec"]["rayClusterConfig"]
POOLS = [RAY_CLUSTER["headGroupSpec"], *RAY_CLUSTER["workerGroupSpecs"]]


def node_types() -> dict[str, dict[str, Any]]:
    """Of Ray's launcher, checked and filled in as it does."""
    from ray.autoscaler._private.util import prepare_config, validate_config

    config = prepare_config(json.loads(json.dumps(CLUSTER)))
    validate_config(config)
    return dict(config["available_node_types"])


def pod_types() -> dict[str, dict[str, Any]]:
    """Of KubeRay, as Ray's autoscaler reads them from the manifest."""
    from ray.autoscaler._private.kuberay import autoscaling_config
    from ray.autoscaler._private.util import validate_config

    config = autoscaling_config._derive_autoscaling_config_from_ray_cr(
        {"metadata": SERVICE["metadata"], "spec": RAY_CLUSTER}
    )
    validate_config(config)
    return dict(config["available_node_types"])


KINDS = pytest.mark.parametrize("types", [node_types, pod_types], ids=["launcher", "kuberay"])


@KINDS
def test_every_pool_starts_at_nothing_and_has_a_bound(types: Any) -> None:
    found = types()
    workers = {name: kind for name, kind in found.items() if name not in ("head", "headgroup")}
    assert set(workers) == {"crew", "fast", "strong"}
    assert all(kind["min_workers"] == 0 < kind["max_workers"] for kind in workers.values())


@KINDS
def test_no_task_runs_on_the_head(types: Any) -> None:
    (head,) = (kind for name, kind in types().items() if name in ("head", "headgroup"))
    assert head["resources"]["CPU"] == 0


def test_the_launchers_bound_is_that_of_its_pools() -> None:
    assert CLUSTER["max_workers"] == sum(kind["max_workers"] for kind in node_types().values())


@KINDS
def test_labels_are_such_as_ray_takes(types: Any) -> None:
    from ray._private.label_utils import validate_node_label_syntax

    for name, kind in types().items():
        assert kind["labels"], name
        validate_node_label_syntax(kind["labels"])


@KINDS
def test_each_tier_has_a_pool_that_holds_a_replica(types: Any) -> None:
    args = SERVE["applications"][0]["args"]
    planned = plan(ServingSettings.model_validate(args), [], wait=True)
    assert len(planned.configs) == 2
    for config in planned.configs:
        engine = config["engine_kwargs"]
        needed = engine["tensor_parallel_size"] * engine["pipeline_parallel_size"]
        accelerator = f"accelerator_type:{config['accelerator_type']}"
        fitting = [k["resources"] for k in types().values() if accelerator in k["resources"]]
        assert any(resources["GPU"] >= needed for resources in fitting), config["model_loading_config"]


@KINDS
def test_agents_are_placed_on_a_pool_without_gpus(types: Any) -> None:
    runtime = RuntimeSettings.model_validate({"placement": json.loads(given_everywhere()["MARG_RUNTIME__PLACEMENT"])})
    (wanted,) = runtime.placement["all"]
    holding = {name for name, kind in types().items() if kind["resources"].get(wanted, 0) >= 1}
    assert holding == {"crew"}
    assert "GPU" not in types()["crew"]["resources"]


def given_everywhere() -> dict[str, str]:
    """What launcher and KubeRay set alike."""
    launched, kuberay = launched_with(), {e["name"]: e.get("value", "") for e in containers()[0]["env"]}
    assert launched["MARG_RUNTIME__PLACEMENT"] == kuberay["MARG_RUNTIME__PLACEMENT"]
    return {**launched, **kuberay}


def launched_with() -> dict[str, str]:
    words = shlex.split(" ".join(CLUSTER["docker"]["run_options"]), comments=True)
    given = [after for word, after in itertools.pairwise(words) if word == "--env"]
    return dict(pair.split("=", 1) for pair in given)


# ---- what is set is a setting of ours


def variables(model: type[BaseModel] = Settings, prefix: str = "MARG_") -> Iterator[str]:
    for name, field in model.model_fields.items():
        kind = field.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            yield from variables(kind, f"{prefix}{name.upper()}__")
        else:
            yield f"{prefix}{name.upper()}"


@pytest.mark.parametrize(
    "path", [ROOT / "cluster.yaml", *DEPLOY.glob("*.yaml"), DEPLOY / "Dockerfile"], ids=lambda path: path.name
)
def test_variables_and_commands_are_ours(path: Path) -> None:
    from tests.unit.test_docs import commands

    text = path.read_text(encoding="utf-8")
    named = set(re.findall(r"\bMARG_[A-Z_]+", text))
    assert sorted(named - set(variables())) == []
    known = commands()
    for name, rest in re.findall(r"(?:&& |-- |head )marg (\w+)([^\n]*)", text):
        flags = set(re.findall(r"(?<!\S)--[a-z-]+", rest.split("'")[0]))
        assert flags <= known[name], f"marg {name}{rest}"


# ---- Serve


def test_the_serve_configuration_is_one() -> None:
    from ray.serve.schema import ServeDeploySchema

    (application,) = ServeDeploySchema.model_validate(SERVE).applications
    module, _, name = application.import_path.partition(":")
    assert callable(getattr(importlib.import_module(module), name))


def test_kuberay_serves_the_same() -> None:
    assert yaml.safe_load(SERVICE["spec"]["serveConfigV2"]) == SERVE


def test_the_tiers_are_those_of_the_settings() -> None:
    given, usual = ServingSettings.model_validate(SERVE["applications"][0]["args"]), ServingSettings()
    assert (given.fast.model, given.strong.model) == (usual.fast.model, usual.strong.model)
    env = given_everywhere()
    assert env["MARG_MODELS__FAST"] == f"vllm:{given.fast.model}"
    assert env["MARG_MODEL"] == f"vllm:{given.strong.model}"
    assert f":{SERVE['http_options']['port']}/v1" in env["MARG_MODELS__BASE_URL"]


# ---- Kubernetes


def containers() -> list[dict[str, Any]]:
    return [container for pool in POOLS for container in pool["template"]["spec"]["containers"]]


def test_the_manifests_kinds_and_names() -> None:
    assert [m["kind"] for m in MANIFESTS] == [
        "ServiceAccount",
        "PersistentVolumeClaim",
        "NetworkPolicy",
        "RayService",
    ]
    assert {m["metadata"]["namespace"] for m in MANIFESTS} == {"marg"}
    assert SERVICE["apiVersion"] == "ray.io/v1"
    env = given_everywhere()
    service = f"{SERVICE['metadata']['name']}-serve-svc.{SERVICE['metadata']['namespace']}"
    assert env["MARG_MODELS__BASE_URL"] == f"http://{service}:8000/v1"


def test_ray_is_the_one_of_the_lock_and_asks_for_a_token() -> None:
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    assert f"\nray=={RAY_CLUSTER['rayVersion']}\n" in lock
    assert RAY_CLUSTER["authOptions"] == {"mode": "token"}


def test_pods_are_confined() -> None:
    for pool in POOLS:
        pod = pool["template"]["spec"]
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["runAsUser"] > 0
        assert "hostNetwork" not in pod
        for container in pod["containers"]:
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "capabilities": {"drop": ["ALL"]},
            }
            assert {"cpu", "memory"} <= set(container["resources"]["requests"]) <= set(container["resources"]["limits"])
    (account,) = (m for m in MANIFESTS if m["kind"] == "ServiceAccount")
    assert account["automountServiceAccountToken"] is False
    assert {pool["template"]["spec"]["serviceAccountName"] for pool in POOLS[1:]} == {account["metadata"]["name"]}


def test_what_pods_mount_is_there() -> None:
    claims = {m["metadata"]["name"] for m in MANIFESTS if m["kind"] == "PersistentVolumeClaim"}
    for pool in POOLS:
        pod = pool["template"]["spec"]
        volumes = {volume["name"]: volume for volume in pod["volumes"]}
        assert {
            v["persistentVolumeClaim"]["claimName"] for v in volumes.values() if "persistentVolumeClaim" in v
        } <= claims
        for container in pod["containers"]:
            mounts = {mount["mountPath"]: mount["name"] for mount in container["volumeMounts"]}
            assert set(mounts.values()) <= set(volumes)
            home = {e["name"]: e.get("value") for e in container["env"]}["MARG_HOME"]
            assert mounts[str(home)] == "home"  # one folder on all nodes


def test_pods_ask_kubernetes_for_what_they_tell_ray() -> None:
    for pool in POOLS[1:]:
        (container,) = pool["template"]["spec"]["containers"]
        asked = container["resources"]["limits"]
        assert pool["resources"]["CPU"] == asked["cpu"]
        assert pool["resources"].get("GPU") == asked.get("nvidia.com/gpu")


def test_only_its_own_pods_reach_a_pod() -> None:
    (policy,) = (m["spec"] for m in MANIFESTS if m["kind"] == "NetworkPolicy")
    chosen = policy["podSelector"]["matchLabels"].items()
    assert all(chosen <= pool["template"]["metadata"]["labels"].items() for pool in POOLS)
    assert policy["policyTypes"] == ["Ingress"]


def test_secrets_are_not_written_down() -> None:
    for container in containers():
        for entry in container["env"]:
            if re.search("(TOKEN|URL|KEY)$", entry["name"]) and entry["name"] != "MARG_MODELS__BASE_URL":
                assert "secretKeyRef" in entry["valueFrom"], entry


# ---- images


def instructions() -> list[tuple[str, str]]:
    """The Dockerfile's instructions with their arguments, continued lines joined."""
    text = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    joined = re.sub(r"\\\n\s*", " ", "\n".join(lines))
    return [(word, rest) for word, _, rest in (line.partition(" ") for line in joined.splitlines())]


def stages() -> dict[str, list[tuple[str, str]]]:
    found: dict[str, list[tuple[str, str]]] = {}
    name = ""
    for word, rest in instructions():
        if word == "FROM":
            base, _, name = rest.partition(" AS ")
            assert name, f"FROM {rest}: a stage without a name"
            found[name] = [(word, base)]
        elif name:
            found[name].append((word, rest))
    return found


def lineage(name: str) -> Iterator[tuple[str, str]]:
    """What makes up a stage, with the stages that it stands on."""
    (_, base), *rest = stages()[name]
    if base in stages():
        yield from lineage(base)
    yield from rest


def test_every_stage_that_is_named_is_defined_before() -> None:
    seen: set[str] = set()
    for name, steps in stages().items():
        for word, rest in steps:
            for source in re.findall(r"--from=(\S+)", rest):
                assert source in seen, f"{word} {rest}"
            if word == "FROM":
                assert rest in seen or ":" in rest
        seen.add(name)
    assert {"cpu", "gpu"} <= seen


def test_what_is_copied_is_there_and_let_in() -> None:
    ignore = (DEPLOY / "Dockerfile.dockerignore").read_text(encoding="utf-8").splitlines()
    let_in = [line[1:] for line in ignore if line.startswith("!")]
    assert "*" in ignore
    for word, rest in instructions():
        if word == "COPY" and "--from" not in rest:
            for source in rest.split()[:-1]:
                assert (ROOT / source).exists(), source
                assert any(fnmatch.fnmatch(source, pattern) for pattern in let_in), source
    assert all((ROOT / pattern).exists() for pattern in let_in)


@pytest.mark.parametrize("target", ["cpu", "gpu"])
def test_images_run_without_root_and_say_how_they_are(target: str) -> None:
    steps = list(lineage(target))
    users = [rest for word, rest in steps if word == "USER"]
    assert users[-1].split(":")[0] not in ("0", "root")
    assert any(word == "HEALTHCHECK" for word, _ in steps)
    (start,) = (rest for word, rest in steps if word == "CMD")
    assert json.loads(start)[:2] == ["ray", "start"]
    assert not any(word == "ENTRYPOINT" for word, _ in steps)  # Ray's launcher and KubeRay bring their own commands


def test_images_are_made_from_the_lock_and_extras_that_exist() -> None:
    extras = set(
        tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    )
    installs = [rest for word, rest in instructions() if word == "RUN" and "pip install" in rest]
    assert len(installs) == 2
    for install in installs:
        assert "--constraint requirements.lock" in install
        (named,) = re.findall(r"'\.\[([\w,-]+)\]'", install)
        assert set(named.split(",")) <= extras


def test_hadolint_has_nothing_to_say() -> None:
    hadolint = Path(sys.executable).parent / "hadolint"
    done = subprocess.run([hadolint, DEPLOY / "Dockerfile"], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (0, "")


def test_images_are_of_the_python_that_the_lock_is_for() -> None:
    (python,) = (
        rest.partition("=")[2] for word, rest in instructions() if word == "ARG" and rest.startswith("PYTHON=")
    )
    assert f"resolved for Python {python} " in (ROOT / "requirements.lock").read_text(encoding="utf-8")


# ---- compose


def test_the_compose_file_is_one() -> None:
    schema = json.loads((files("check_jsonschema") / "builtin_schemas/vendor/compose-spec.json").read_text("utf-8"))
    jsonschema.validate(COMPOSE, schema)


def services() -> Mapping[str, dict[str, Any]]:
    found: Mapping[str, dict[str, Any]] = COMPOSE["services"]
    return found


def test_compose_names_only_what_it_has() -> None:
    assert set(services()) == {"head", "worker", "postgres", "searxng"}
    for name, service in services().items():
        assert set(service.get("depends_on", {})) <= set(services()), name
        for volume in service.get("volumes", []):
            source = re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", volume).split(":")[0]
            assert source in COMPOSE["volumes"] or (DEPLOY / source).exists(), volume
        if "build" in service:
            assert service["build"]["target"] in stages()
            assert (DEPLOY / service["build"]["context"] / service["build"]["dockerfile"]).exists()
    hosts = set(re.findall(r"(?:@|//|=)(\w+):\d+", json.dumps(COMPOSE["services"]))) | {"head"}
    assert hosts - {"localhost"} <= set(services())


def test_compose_publishes_nothing_and_knows_no_secret() -> None:
    text = (DEPLOY / "compose.yaml").read_text(encoding="utf-8")
    for service in services().values():
        assert "ports" not in service
        assert service.get("privileged") is None
    secrets = re.findall(r"^ *\w*(?:TOKEN|PASSWORD|SECRET): (.*)$", text, re.M)
    assert len(secrets) == 3
    assert all(re.fullmatch(r"\$\{\w+:\?[^}]+\}", secret) for secret in secrets)


def test_whoever_is_waited_for_says_how_it_is() -> None:
    for service in services().values():
        for other, how in service.get("depends_on", {}).items():
            assert how == {"condition": "service_healthy"}
            assert "healthcheck" in services()[other] or "build" in services()[other]  # ours has it in the image


def test_nodes_share_the_folder_and_the_database() -> None:
    for name in ("head", "worker"):
        assert any(v.endswith(":/srv/marg") for v in services()[name]["volumes"])
        assert services()[name]["environment"]["MARG_STORE__URL"].startswith("postgresql+asyncpg://")
    assert "MARG_HOME=/srv/marg" in (DEPLOY / "Dockerfile").read_text(encoding="utf-8")


def test_searxng_answers_in_the_form_that_is_asked_for() -> None:
    settings = yaml.safe_load((DEPLOY / "searxng" / "settings.yml").read_text(encoding="utf-8"))
    assert "json" in settings["search"]["formats"]
