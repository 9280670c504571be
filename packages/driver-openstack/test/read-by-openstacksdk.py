"""Prints, for each folder named on standard input, what openstacksdk makes of the clouds.yaml and its companions in it.

Input: a JSON list of {"folder", "cloud", "region", "env"}. Output: a JSON list of facts, or {"refused": reason}.
"""
import json
import os
import sys
import warnings

warnings.simplefilter("ignore")
from openstack.config import loader  # noqa: E402


class Captured(Exception):
    pass


class Session:
    def post(self, url, json=None, **_):
        raise Captured({"url": url, "body": json})


def token_request(region):
    plugin = region._auth
    if hasattr(plugin, "create_plugin"):
        url = region.config["auth"]["auth_url"].rstrip("/")
        url = url if url.endswith("/v3") else url + "/v3"
        plugin = plugin.create_plugin(Session(), (3, 0), url)
    try:
        plugin.get_auth_ref(Session())
    except Captured as captured:
        return captured.args[0]
    raise AssertionError("no token was requested")


def facts(case):
    path = lambda name: [os.path.join(case["folder"], name)]
    for key in list(os.environ):
        if key.startswith("OS_"):
            del os.environ[key]
    os.environ.update(case.get("env") or {})
    config = loader.OpenStackConfig(
        config_files=path("clouds.yaml"), secure_files=path("secure.yaml"), vendor_files=path("clouds-public.yaml")
    )
    kwargs = {"region_name": case["region"]} if case.get("region") else {}
    region = config.get_one(cloud=case["cloud"], **kwargs)
    verify, cert = region.get_requests_verify_args()
    named = lambda key: next((net["name"] for net in region.config["networks"] if net.get(key)), None)
    return {
        "token": token_request(region),
        "region": region.config["region_name"] or None,
        "interface": region.get_interface(),
        "computeEndpoint": region.config.get("compute_endpoint_override") or None,
        "imageFormat": region.config["image_format"],
        "verify": verify if isinstance(verify, bool) else True,
        "cacert": verify if isinstance(verify, str) else None,
        "defaultInterface": named("default_interface"),
        "natSource": named("nat_source"),
        "natDestination": named("nat_destination"),
        "external": [net["name"] for net in region.config["networks"] if net.get("routes_ipv4_externally", net["routes_externally"])],
    }


def read(case):
    try:
        return facts(case)
    except Exception as error:  # a refusal, whatever its type
        return {"refused": str(error) or type(error).__name__}


print(json.dumps([read(case) for case in json.load(sys.stdin)]))
