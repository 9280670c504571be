"""Uses a simulated Azure through Microsoft's Python libraries, as the Python launcher does.

Argument: JSON with "url", "token", "subscription", "subnet". Output: JSON with facts.
"""
import json
import sys
import time

from azure.core.credentials import AccessToken
from azure.core.exceptions import HttpResponseError
from azure.mgmt.compute import ComputeManagementClient
from azure.mgmt.network import NetworkManagementClient
from azure.mgmt.resource import ResourceManagementClient

setup = json.loads(sys.argv[1])
GROUP = "nodepool"
LOCATION = "centralus"


class Credential:
    """Has the token that the login of the simulated cloud gave."""

    def get_token(self, *scopes, **options):
        return AccessToken(setup["token"], int(time.time()) + 3600)


def client(kind, **options):
    return kind(
        Credential(),
        setup["subscription"],
        base_url=setup["url"],
        credential_scopes=[setup["url"] + "/.default"],
        polling_interval=0.1,
        **options,
    )


compute, network, resources = (
    client(kind) for kind in (ComputeManagementClient, NetworkManagementClient, ResourceManagementClient)
)


def refusal(call):
    """Returns status and code of a call that is refused."""
    try:
        call()
    except HttpResponseError as error:
        return [error.status_code, error.error.code if error.error else None]
    return None


def names(listed):
    return sorted(one.name for one in listed)


def vm(name, **changes):
    address = {
        "name": name + "-ipv4",
        "sku": {"name": "Standard"},
        "public_ip_allocation_method": "Static",
        "delete_option": "Delete",
    }
    ip = {"name": "v4", "subnet": {"id": setup["subnet"]}, "public_ip_address_configuration": address}
    nic = {"name": name + "-nic", "primary": True, "delete_option": "Delete", "ip_configurations": [ip]}
    return {
        "location": LOCATION,
        "tags": {"team": "ci"},
        "hardware_profile": {"vm_size": "Standard_B2s"},
        "storage_profile": {
            "image_reference": {"publisher": "Debian", "offer": "debian-12", "sku": "12", "version": "latest"},
            "os_disk": {"name": name + "-disk", "create_option": "FromImage", "delete_option": "Delete"},
        },
        "os_profile": {"computer_name": name, "admin_username": "zuul", "admin_password": "Good-Password-1"},
        "network_profile": {"network_api_version": "2022-11-01", "network_interface_configurations": [nic]},
        **changes,
    }


facts = {}
facts["places"] = {
    "group": resources.resource_groups.get(GROUP).location,
    "groups": names(resources.resource_groups.list()),
    "network": network.virtual_networks.get(GROUP, "NodePool").name,
    "subnet": network.subnets.get(GROUP, "NodePool", "default").id == setup["subnet"],
    "sizes": "Standard_B2s" in names(compute.resource_skus.list(filter=f"location eq '{LOCATION}'")),
    "cores": [usage.limit for usage in compute.usage.list(LOCATION) if usage.name.value == "cores"],
}

machines = compute.virtual_machines
created = machines.begin_create_or_update(GROUP, "ci-1", vm("ci-1")).result()
nic = network.network_interfaces.get(GROUP, "ci-1-nic", expand="ipConfigurations/publicIPAddress")
[ip] = nic.ip_configurations
facts["vm"] = {
    "state": created.provisioning_state,
    "size": created.hardware_profile.vm_size,
    "private": ip.private_ip_address[:3],
    "public": ip.public_ip_address.ip_address[:4],
    "address": network.public_ip_addresses.get(GROUP, "ci-1-ipv4").sku.name,
    "disk": compute.disks.get(GROUP, "ci-1-disk").managed_by == created.id,
    "view": [status.code for status in machines.instance_view(GROUP, "ci-1").statuses],
    "expanded": machines.get(GROUP, "ci-1", expand="instanceView").instance_view is not None,
    "plain": machines.get(GROUP, "ci-1").instance_view is not None,
    "again": machines.begin_create_or_update(GROUP, "ci-1", vm("ci-1")).result().vm_id == created.vm_id,
    "tags": machines.begin_update(GROUP, "ci-1", {"tags": {"team": "qa"}}).result().tags,
    "listed": [names(machines.list(GROUP)), names(machines.list_all())],
}
facts["refused"] = {
    "location": refusal(lambda: machines.begin_create_or_update(GROUP, "ci-2", vm("ci-2", location="atlantis"))),
    "zone": refusal(lambda: machines.begin_create_or_update(GROUP, "ci-2", vm("ci-2", zones=["9"]))),
    "change": refusal(lambda: machines.begin_create_or_update(GROUP, "ci-1", vm("ci-1", user_data="eA=="))),
    "unknown": refusal(lambda: machines.get(GROUP, "ci-9")),
    "interface": refusal(lambda: network.network_interfaces.begin_delete(GROUP, "ci-1-nic").result()),
}

size = 2**20 + 512
upload = {"location": LOCATION, "creation_data": {"create_option": "Upload", "upload_size_bytes": size}}
disk = compute.disks.begin_create_or_update(GROUP, "image", upload).result()
access = {"access": "Write", "duration_in_seconds": 3600}
facts["disk"] = {
    "state": disk.disk_state,
    "access": "/blobs/image?" in compute.disks.begin_grant_access(GROUP, "image", access).result().access_sas,
    "busy": refusal(lambda: compute.disks.begin_delete(GROUP, "image").result()),
    "revoked": compute.disks.begin_revoke_access(GROUP, "image").result(),
    "deleted": compute.disks.begin_delete(GROUP, "image").result(),
    "images": names(compute.images.list_by_resource_group(GROUP)),
    "image": compute.images.get(GROUP, "ready").hyper_v_generation,
}

machines.begin_delete(GROUP, "ci-1").result()
facts["left"] = [
    names(listed)
    for listed in (
        machines.list(GROUP),
        network.network_interfaces.list(GROUP),
        network.public_ip_addresses.list(GROUP),
        compute.disks.list_by_resource_group(GROUP),
    )
]
print(json.dumps(facts))
