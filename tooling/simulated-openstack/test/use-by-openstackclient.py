"""Uses an OpenStack through python-openstackclient and the cloud layer of openstacksdk.

Argument: the name of a cloud in OS_CLIENT_CONFIG_FILE, `real` or `limited`; the command line client keeps its clients for
the life of the process. Output: JSON with facts, which are the same for the simulated cloud and for the real services.
"""
import contextlib
import hashlib
import io
import json
import os
import re
import sys
import tempfile
import uuid
import warnings

warnings.simplefilter("ignore")
import openstack  # noqa: E402
from openstack.exceptions import SDKException  # noqa: E402
from openstackclient.shell import OpenStackShell  # noqa: E402

WAIT_S = 240
IMAGE_BYTES = os.urandom(100000)
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJmkSkL2zYDx1hz5vFqYxkbvkHzk1MmKD1AWGzQ4YHqS ci"
CLOUD = sys.argv[1]
MARK = uuid.uuid4().hex[:8]


def run(arguments):
    """Runs the command line client in this process. Returns its status and what it wrote."""
    output, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors):
        try:
            status = OpenStackShell().run(["--os-cloud", CLOUD, *arguments])
        except SystemExit as end:
            status = end.code
    return status, output.getvalue(), errors.getvalue()


def command(text, *more, form="json"):
    arguments = [*text.split(), *more, *(["-f", form] if form else [])]
    status, output, errors = run(arguments)
    if status != 0:
        raise AssertionError("{}: {} {}".format(arguments, status, errors))
    return json.loads(output[output.index("[" if output.lstrip().startswith("[") else "{") :]) if form else output


def refusal(text):
    """Returns the reason that the client shows, without ids."""
    status, _, errors = run(text.split())
    if status == 0:
        raise AssertionError("not refused: " + text)
    return re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}|req-[0-9a-f-]+|https?://\S+", "ID", errors.strip())


def pick(record, *keys):
    return [record[key] for key in keys]


def catalogue():
    flavors = command("flavor list")
    services = command("catalog list")
    return {
        "services": sorted(service["Type"] for service in services),
        "flavors": sorted(pick(flavor, "Name", "VCPUs", "RAM") for flavor in flavors),
        "flavor": pick(command("flavor show m1.small"), "name", "vcpus", "ram", "disk", "properties"),
        "networks": sorted(network["Name"] for network in command("network list")),
        "zones": sorted({zone["Zone Name"] for zone in command("availability zone list")}),
        "token": sorted(command("token issue")),
    }


def images(file):
    name = "cli-image-" + MARK
    created = command("image create --disk-format raw --container-format bare --property team=ci", "--file", file, name)
    image = command("image show", name)
    facts = {
        "created": created["name"] == name,
        "image": [image["status"], image["size"], image["checksum"] == hashlib.md5(IMAGE_BYTES).hexdigest()],
        "property": image["properties"]["team"],
        "listed": [item["Status"] for item in command("image list", "--name", name)],
    }
    command("image set --property team=qa", name, form=None)
    facts["changed"] = command("image show", name)["properties"]["team"]
    command("image save --file", file + ".copy", name, form=None)
    with open(file + ".copy", "rb") as copy:
        facts["isSame"] = copy.read() == IMAGE_BYTES
    command("image delete", name, form=None)
    facts["left"] = command("image list", "--name", name)
    return facts


def servers():
    name, volume, key = "cli-server-" + MARK, "cli-volume-" + MARK, "cli-key-" + MARK
    with tempfile.NamedTemporaryFile("w") as file:
        file.write(KEY)
        file.flush()
        fingerprint = command("keypair create --public-key", file.name, key)["fingerprint"]
    created = command(
        "server create --image test-image --flavor m1.small --network private --security-group default --wait",
        "--key-name", key, "--property", "nodepool_node_id=1", name,
    )  # fmt: skip
    server = command("server show", name)
    address = command("floating ip create public")["floating_ip_address"]
    command("server add floating ip", name, address, form=None)
    facts = {
        "fingerprint": fingerprint,
        "created": pick(created, "status", "OS-EXT-STS:vm_state", "OS-EXT-STS:task_state"),
        "server": pick(server, "status", "properties", "OS-EXT-AZ:availability_zone", "security_groups"),
        "ofKey": server["key_name"] == key,
        "flavor": server["flavor"].split()[0],
        "image": server["image"].split()[0],
        "listed": [pick(item, "Status", "Image", "Flavor") for item in command("server list", "--name", name)],
        "floatingIp": floating_ip(address),
        "console": bool(command("console log show", name, form=None).strip()),
        "ports": [port["Status"] for port in command("port list --server", name)],
        "volume": attached_volume(name, volume),
    }
    command("server remove floating ip", name, address, form=None)
    facts["floatingIpRemoved"] = floating_ip(address)
    command("floating ip delete", address, form=None)
    facts["floatingIpDeleted"] = floating_ip(address)
    command("server delete --wait", name, form=None)
    command("keypair delete", key, form=None)
    facts["left"] = command("server list", "--name", name)
    facts["keysLeft"] = [pair for pair in command("keypair list") if pair["Name"] == key]
    return facts


def floating_ip(address):
    """Returns whether the address belongs to a port, and its fixed address. It reaches the server's own view late."""
    listed = [ip for ip in command("floating ip list") if ip["Floating IP Address"] == address]
    return [[ip["Port"] is not None, ip["Fixed IP Address"] is not None] for ip in listed]


def attached_volume(server, volume):
    """Attaches a volume to a server, detaches and deletes it."""
    cloud = openstack.connect(cloud=CLOUD)
    command("volume create --size 1 --property team=ci", volume)
    shown = cloud.block_storage.wait_for_status(cloud.get_volume(volume), "available", wait=WAIT_S)
    added = command("server add volume", server, volume)
    cloud.block_storage.wait_for_status(shown, "in-use", wait=WAIT_S)
    facts = {
        "isAdded": added["Volume ID"] == shown.id,
        "listed": [item["Volume ID"] == shown.id for item in command("server volume list", server)],
        "inUse": pick(command("volume show", volume), "status", "size", "properties"),
        "refused": refusal("volume delete " + volume),
    }
    command("server remove volume", server, volume, form=None)
    cloud.block_storage.wait_for_status(shown, "available", wait=WAIT_S)
    command("volume delete", volume, form=None)
    cloud.block_storage.wait_for_delete(shown, wait=WAIT_S)
    return dict(facts, left=[item for item in command("volume list") if item["Name"] == volume])


def quotas():
    quota = command("quota show")
    limits = {limit["Name"]: limit["Value"] for limit in command("limits show --absolute")}
    return {
        "quota": pick(quota, "instances", "cores", "ram", "volumes", "floating-ips", "ports"),
        "limits": pick(limits, "maxTotalInstances", "maxTotalCores", "maxTotalRAMSize", "maxTotalVolumes"),
        "used": pick(limits, "totalInstancesUsed", "totalCoresUsed", "totalRAMUsed", "totalVolumesUsed"),
        "refused": refusal("server create --image test-image --flavor m1.large --network private cli-large"),
    }


def refusals():
    name = "cli-none-" + MARK
    return {
        "image": refusal("server create --image none --flavor m1.tiny --network private cli-none"),
        "server": refusal("server show cli-none"),
        "noHost": refusal("server create --image test-image --flavor m1.nohost --network private --wait " + name),
        "deletion": command("server delete", name, form=None),
    }


class CloudLayer:
    """Runs the calls of the Python launcher through openstacksdk."""

    def __init__(self):
        self.cloud = openstack.connect(cloud=CLOUD)
        self.image = "sdk-image-" + MARK

    def facts(self, file):
        found = {"image": self.upload(file), "server": self.server(), "volume": self.boot_from_volume()}
        found["failed"] = self.failed_server()
        found["isDeleted"] = self.cloud.delete_image(self.image, wait=True, timeout=WAIT_S)
        found["limits"] = self.limits()
        found["zones"] = self.cloud.list_availability_zone_names()
        found["flavors"] = sorted(flavor.name for flavor in self.cloud.list_flavors(get_extra=True))
        return found

    def upload(self, file):
        options = {"disk_format": "raw", "container_format": "bare", "meta": {"nodepool_build_id": "0000000001"}}
        image = self.cloud.create_image(self.image, filename=file, wait=True, timeout=WAIT_S, **options)
        return [image.status, image.size, image.properties["nodepool_build_id"]]

    def create(self, name, flavor, **options):
        place = {"image": self.image, "flavor": flavor, "network": "private"}
        return self.cloud.create_server(name, wait=True, timeout=WAIT_S, **place, **options)

    def server(self):
        name = "sdk-server-" + MARK
        options = {
            "meta": {"groups": "nodepool"},
            "userdata": "#cloud-config",
            "config_drive": True,
            "security_groups": ["default"],
            "availability_zone": "nova",
            "auto_ip": True,
        }
        server = self.create(name, "m1.small", **options)
        floating = server.public_v4
        listed = [item for item in self.cloud.list_servers(detailed=True) if item.name == name]
        facts = {
            "server": [server.status, server.metadata, bool(server.has_config_drive)],
            "reachedAt": server.interface_ip == floating and floating != server.private_v4,
            "listed": [[item.status, item.public_v4 == floating] for item in listed],
            "console": bool(self.cloud.get_server_console(server)),
        }
        facts["isDeleted"] = self.cloud.delete_server(name, wait=True, timeout=WAIT_S, delete_ips=True)
        # This edition of the SDK looks for the address in a list from before, and leaves it.
        left = [ip for ip in self.cloud.network.ips() if ip.floating_ip_address == floating]
        facts["addressesLeft"] = [[ip.port_id, ip.status, self.cloud.delete_floating_ip(ip.id)] for ip in left]
        facts["again"] = self.cloud.delete_server(name, wait=True)
        return facts

    def boot_from_volume(self):
        options = {"boot_from_volume": True, "volume_size": 2, "terminate_volume": True, "auto_ip": False}
        server = self.create("sdk-volume-" + MARK, "m1.tiny", **options)
        volumes = [self.cloud.block_storage.get_volume(volume.id) for volume in server.attached_volumes]
        facts = [[volume.size, volume.is_bootable, volume.status] for volume in volumes]
        self.cloud.delete_server(server.id, wait=True, timeout=WAIT_S)
        for volume in volumes:
            self.cloud.block_storage.wait_for_delete(volume, wait=WAIT_S)
        return [server.status, facts]

    def failed_server(self):
        name = "sdk-none-" + MARK
        try:
            self.create(name, "m1.nohost", auto_ip=False)
        except SDKException as error:
            reason = str(error)
        shown = command("server show", name)
        is_deleted = self.cloud.delete_server(name, wait=True, timeout=WAIT_S)
        return [reason, shown["status"], shown["fault"]["message"], is_deleted]

    def limits(self):
        compute = self.cloud.get_compute_limits()
        volume = self.cloud.get_volume_limits()["absolute"]
        return {
            "compute": [compute.instances, compute.total_cores, compute.total_ram],
            "volume": [volume["maxTotalVolumes"], volume["maxTotalVolumeGigabytes"]],
            "network": self.cloud.network.get_quota(self.cloud.current_project_id, details=True).floating_ips["limit"],
        }


with tempfile.TemporaryDirectory() as folder:
    data = os.path.join(folder, "image.raw")
    with open(data, "wb") as image_file:
        image_file.write(IMAGE_BYTES)
    parts = {
        "catalogue": catalogue,
        "images": lambda: images(data),
        "servers": servers,
        "refusals": refusals,
        "cloudLayer": lambda: CloudLayer().facts(data),
    }
    wanted = parts if CLOUD == "real" else {"quotas": quotas}
    print(json.dumps({name: part() for name, part in wanted.items()}))
