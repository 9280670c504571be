"""Uses a simulated Google Cloud through google-api-python-client, as the Python launcher does.

Argument: JSON with "url", "credentials" (path), "definitions" (folder), "project", "bucket". Output: JSON with facts.
"""
import json
import os
import sys
import tarfile
import tempfile
import uuid

import google_auth_httplib2
from google.auth.exceptions import RefreshError
from google.oauth2 import service_account
from googleapiclient.discovery import build_from_document
from googleapiclient.errors import HttpError
from googleapiclient.http import MediaFileUpload, build_http

GRAIN = 256 * 1024
SCOPES = ["https://www.googleapis.com/auth/cloud-platform"]

setup = json.loads(sys.argv[1])
url, project, bucket = setup["url"], setup["project"], setup["bucket"]
zone = {"project": project, "zone": "us-central1-a"}


def discovery_document(name):
    """Returns the published document, its methods below their resources again, for the address of the simulated cloud."""
    with open(os.path.join(setup["definitions"], name + ".json")) as file:
        part = json.load(file)
    service_path = name + "/v1/"
    resources = {}
    for method_id, method in part["methods"].items():
        resource, method_name = method_id.split(".")
        described = dict(method, id=name + "." + method_id, path=method["path"][len("/" + service_path) :])
        for key in ("request", "response"):
            if key in method:
                described[key] = {"$ref": method[key]}
        if "uploadPath" in method:
            described["mediaUpload"] = {
                "accept": ["*/*"],
                "protocols": {"resumable": {"multipart": True, "path": method["uploadPath"]}},
            }
        resources.setdefault(resource, {"methods": {}})["methods"][method_name] = described
    document = {key: part[key] for key in ("id", "revision", "parameters", "schemas")}
    schemas = {key: dict(schema, id=key) for key, schema in part["schemas"].items()}
    address = {"rootUrl": url + "/", "servicePath": service_path}
    return dict(document, schemas=schemas, name=name, version="v1", resources=resources, **address)


def connect(name, credentials):
    http = google_auth_httplib2.AuthorizedHttp(credentials, http=build_http())
    return build_from_document(discovery_document(name), http=http)


def short(link):
    return link.split("/")[-1]


def pages(collection, method="list", **arguments):
    """Returns the items of each page."""
    request = getattr(collection, method)(**arguments)
    found = []
    while request is not None:
        answer = request.execute()
        found.append(answer.get("items", []))
        request = getattr(collection, method + "_next")(request, answer)
    return found


def names(found):
    return [[item["name"] for item in page] for page in found]


def refusal(request):
    try:
        request.execute()
    except HttpError as error:
        content = json.loads(error.content.decode())["error"]
        return {"status": error.resp.status, "reason": content["errors"][0]["reason"]}
    raise AssertionError("not refused")


def waited(operations, operation, **scope):
    while operation["status"] != "DONE":
        operation = operations.wait(operation=operation["name"], **scope).execute()
    if "error" in operation:
        raise AssertionError(operation["error"])
    target = short(operation["targetLink"])
    return {"type": operation["operationType"], "target": target, "progress": operation["progress"]}


def places(compute):
    regions, zones = compute.regions(), compute.zones()
    region = regions.get(project=project, region="us-central1").execute()
    machine_type = compute.machineTypes().get(machineType="n2-standard-4", **zone).execute()
    return {
        "regions": names(pages(regions, project=project)),
        "region": {
            "zones": [short(link) for link in region["zones"]],
            "cores": [quota["limit"] for quota in region["quotas"] if quota["metric"] == "CPUS"],
        },
        "zones": names(pages(zones, project=project)),
        "zone": short(zones.get(**zone).execute()["region"]),
        "machineType": [machine_type["guestCpus"], machine_type["memoryMb"]],
        "machineTypes": names(pages(compute.machineTypes(), filter="name = n2-standard-4", **zone)),
        "unknownMachineType": refusal(compute.machineTypes().get(machineType="z9-huge", **zone)),
    }


def disk_archive(folder):
    """Packs an incompressible disk, so that the archive has several pieces."""
    disk, archive = os.path.join(folder, "disk.raw"), os.path.join(folder, "disk.tar.gz")
    with open(disk, "wb") as file:
        file.write(os.urandom(2 * GRAIN + 1024))
    with tarfile.open(archive, "w:gz", format=tarfile.GNU_FORMAT) as tar:
        tar.add(disk, arcname="disk.raw")
    return archive


def upload(storage, archive):
    """Uploads in pieces, and goes on after an answer that says that the server failed."""
    media = MediaFileUpload(archive, mimetype="application/gzip", chunksize=GRAIN, resumable=True)
    body = {"metadata": {"by": "script"}}
    request = storage.objects().insert(bucket=bucket, name="ci/disk.tar.gz", body=body, media_body=media)
    failures, complete = [], None
    while complete is None:
        try:
            _, complete = request.next_chunk()
        except HttpError as error:
            failures.append(error.resp.status)
    return {
        "failures": failures,
        "isWhole": int(complete["size"]) == os.path.getsize(archive),
        "metadata": complete["metadata"],
    }


def objects(storage):
    with tempfile.TemporaryDirectory() as folder:
        uploaded = upload(storage, disk_archive(folder))
    stored = storage.objects().get(bucket=bucket, object="ci/disk.tar.gz").execute()
    return {
        "upload": uploaded,
        "name": stored["name"],
        "listed": names(pages(storage.objects(), bucket=bucket, prefix="ci/")),
        "unknown": refusal(storage.objects().get(bucket=bucket, object="none")),
    }


def images(compute, storage):
    found, operations = compute.images(), compute.globalOperations()
    body = {
        "name": "ci-1",
        "family": "ci",
        "labels": {"team": "ci"},
        "rawDisk": {"source": "https://storage.googleapis.com/{}/ci/disk.tar.gz".format(bucket)},
    }
    inserted = waited(operations, found.insert(project=project, body=body).execute(), project=project)
    image = found.get(project=project, image="ci-1").execute()
    facts = {
        "inserted": inserted,
        "image": {key: image.get(key) for key in ("status", "labels", "family", "diskSizeGb")},
        "again": refusal(found.insert(project=project, body=body)),
        "ofFamily": found.getFromFamily(project=project, family="ci").execute()["name"],
        "published": found.getFromFamily(project="debian-cloud", family="debian-12").execute()["name"],
        "listed": names(pages(found, project=project, maxResults=1)),
        "filtered": names(pages(found, project=project, filter='labels.team = "ci"')),
    }
    storage.objects().delete(bucket=bucket, object="ci/disk.tar.gz").execute()
    return facts


def instance_body(compute, name):
    """Describes an instance as the Python launcher does."""
    machine_type = compute.machineTypes().get(machineType="n2-standard-4", **zone).execute()
    image = compute.images().getFromFamily(project=project, family="ci").execute()
    disk = {"sourceImage": image["selfLink"], "diskType": "zones/us-central1-a/diskTypes/pd-ssd", "diskSizeGb": "20"}
    access = {"type": "ONE_TO_ONE_NAT", "name": "External NAT"}
    return {
        "name": name,
        "machineType": machine_type["selfLink"],
        "disks": [{"boot": True, "autoDelete": True, "initializeParams": disk}],
        "networkInterfaces": [{"network": "global/networks/default", "accessConfigs": [access]}],
        "serviceAccounts": [],
        "labels": {"number": name[-1]},
        "metadata": {"items": [{"key": "nodepool_node_id", "value": name}]},
    }


def disk(compute, name):
    found = compute.disks().get(disk=name, **zone).execute()
    image = compute.images().get(project=project, image="ci-1").execute()
    return {
        "isOfImage": found["sourceImage"] == image["selfLink"],
        "type": short(found["type"]),
        "gb": found["sizeGb"],
        "users": [short(link) for link in found["users"]],
    }


def instances(compute):
    found, operations = compute.instances(), compute.zoneOperations()
    request_id = str(uuid.uuid4())
    body = instance_body(compute, "ci-1")
    first = found.insert(body=body, requestId=request_id, **zone).execute()
    second = found.insert(body=body, requestId=request_id, **zone).execute()
    inserted = waited(operations, first, **zone)
    for name in ("ci-2", "ci-3"):
        waited(operations, found.insert(body=instance_body(compute, name), **zone).execute(), **zone)
    instance = found.get(instance="ci-1", **zone).execute()
    interface = instance["networkInterfaces"][0]
    scopes = {}
    everywhere = found.aggregatedList(project=project, maxResults=2)
    aggregated_pages = 0
    while everywhere is not None:
        answer = everywhere.execute()
        aggregated_pages += 1
        for scope, content in answer["items"].items():
            scopes.setdefault(scope, []).extend(item["name"] for item in content.get("instances", []))
        everywhere = found.aggregatedList_next(everywhere, answer)
    return {
        "inserted": inserted,
        "sameOperation": first["name"] == second["name"],
        "operation": operations.get(operation=first["name"], **zone).execute()["status"],
        "operations": sorted({item["operationType"] for page in pages(operations, **zone) for item in page}),
        "instance": {
            "status": instance["status"],
            "machineType": short(instance["machineType"]),
            "zone": short(instance["zone"]),
            "metadata": instance["metadata"]["items"],
            "addresses": [interface["networkIP"], interface["accessConfigs"][0]["natIP"]],
        },
        "disk": disk(compute, short(instance["disks"][0]["source"])),
        "again": refusal(found.insert(body=body, **zone)),
        "listed": names(pages(found, maxResults=2, **zone)),
        "filtered": names(pages(found, filter='(labels.number = "2") AND (status = RUNNING)', **zone)),
        "aggregated": {scope: listed for scope, listed in scopes.items() if listed},
        "aggregatedPages": aggregated_pages,
        "disks": names(pages(compute.disks(), **zone)),
        "console": "ci-1 login:" in found.getSerialPortOutput(instance="ci-1", **zone).execute()["contents"],
        "unknown": refusal(found.get(instance="none", **zone)),
        "wrong": refusal(found.insert(body=dict(body, name="ci-4", machineType="e2-micro"), **zone)),
    }


def deletion(compute):
    found, operations = compute.instances(), compute.zoneOperations()
    for name in ("ci-1", "ci-2", "ci-3"):
        deleted = waited(operations, found.delete(instance=name, **zone).execute(), **zone)
    image = compute.images().delete(project=project, image="ci-1").execute()
    return {
        "deleted": deleted,
        "left": names(pages(found, **zone)),
        "disks": names(pages(compute.disks(), **zone)),
        "image": waited(compute.globalOperations(), image, project=project),
        "images": names(pages(compute.images(), project=project)),
        "again": refusal(found.delete(instance="ci-1", **zone)),
    }


def token_refusal(credentials):
    try:
        credentials.refresh(google_auth_httplib2.Request(build_http()))
    except RefreshError as error:
        return json.loads(error.args[1])["error"]
    raise AssertionError("not refused")


def tokens(account):
    stranger = service_account.Credentials(account.signer, "stranger@example.org", url + "/token", scopes=SCOPES)
    return {
        "ofStranger": token_refusal(stranger),
        "withoutScope": token_refusal(account.with_scopes(["https://www.googleapis.com/auth/drive"])),
    }


account = service_account.Credentials.from_service_account_file(setup["credentials"], scopes=SCOPES)
compute, storage = connect("compute", account), connect("storage", account)
facts = {"tokens": tokens(account), "places": places(compute), "objects": objects(storage)}
facts["images"] = images(compute, storage)
facts["instances"] = instances(compute)
facts["deletion"] = deletion(compute)
print(json.dumps(facts))
