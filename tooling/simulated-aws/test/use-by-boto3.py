"""The lives of an instance and of an image, with boto3.

Usage: use-by-boto3.py SETUP, a JSON object with the address and the sample content of a simulated AWS. Prints one JSON
object with what the client saw.
"""

import base64
import hashlib
import io
import json
import sys
import time

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

setup = json.loads(sys.argv[1])
BLOCK = 524288


def client(service, region="us-east-1", **options):
    return boto3.client(
        service,
        region_name=region,
        endpoint_url=setup["url"],
        aws_access_key_id=setup["accessKeyId"],
        aws_secret_access_key=options.pop("secret", setup["secretAccessKey"]),
        config=Config(retries={"max_attempts": 1}, **options),
    )


def refused(call, *args, **parameters):
    """Returns the code of the error that a call ends with."""
    try:
        call(*args, **parameters)
    except ClientError as error:
        return error.response["Error"]["Code"]
    return "accepted"


def ended_import(task):
    """Returns the detail of an import of a snapshot once it has ended."""
    while True:
        found = ec2.describe_import_snapshot_tasks(ImportTaskIds=[task])["ImportSnapshotTasks"][0]["SnapshotTaskDetail"]
        if found["Status"] in ("completed", "deleted"):
            return found
        time.sleep(0.05)


ec2 = client("ec2")
s3 = client("s3")
facts = {}

# Who and where.
facts["identity"] = client("sts").get_caller_identity()["Account"]
facts["wrongSecret"] = refused(client("ec2", secret="wrong").describe_regions)
quotas = client("service-quotas").get_paginator("list_service_quotas")
pages = list(quotas.paginate(ServiceCode="ec2", PaginationConfig={"PageSize": 20}))
facts["quotas"] = {
    "pages": len(pages) > 1,
    "standard": [q["Value"] for p in pages for q in p["Quotas"] if q["QuotaCode"] == "L-1216C47A"],
}
types = ec2.get_paginator("describe_instance_types").paginate(PaginationConfig={"PageSize": 10})
cores = {t["InstanceType"]: t["VCpuInfo"] for page in types for t in page["InstanceTypes"]}
facts["types"] = [
    [name, cores[name]["DefaultVCpus"], cores[name]["DefaultCores"]]
    for name in ("m5.large", "m7g.large", "im4gn.large", "gr6.4xlarge", "mac2.metal", "u7in-16tb.224xlarge")
]
offers = ec2.describe_instance_type_offerings(
    LocationType="availability-zone", Filters=[{"Name": "instance-type", "Values": ["u7in-16tb.224xlarge"]}]
)
facts["offers"] = sorted(o["Location"] for o in offers["InstanceTypeOfferings"])

# The life of an instance.
launch = {
    "ImageId": setup["publicImageId"],
    "InstanceType": "m5.large",
    "MinCount": 1,
    "MaxCount": 2,
    "KeyName": "nodepool",
    "ClientToken": "launch-1",
    "UserData": "#!/bin/sh\n",
    "IamInstanceProfile": {"Name": "nodepool-nodes"},
    "MetadataOptions": {"HttpTokens": "required"},
    "NetworkInterfaces": [
        {
            "DeviceIndex": 0,
            "SubnetId": setup["subnets"]["us-east-1b"],
            "Groups": [setup["securityGroups"][1]],
            "AssociatePublicIpAddress": True,
            "Ipv6AddressCount": 1,
        }
    ],
    "BlockDeviceMappings": [
        {"DeviceName": "/dev/xvda", "Ebs": {"VolumeSize": 20, "VolumeType": "gp3", "DeleteOnTermination": True}}
    ],
    "TagSpecifications": [
        {"ResourceType": kind, "Tags": [{"Key": "Name", "Value": "ci-1"}]} for kind in ("instance", "volume")
    ],
}
first = ec2.run_instances(**launch)
again = ec2.run_instances(**launch)
ids = [i["InstanceId"] for i in first["Instances"]]
facts["token"] = {
    "twin": ids == [i["InstanceId"] for i in again["Instances"]],
    "changed": refused(ec2.run_instances, **{**launch, "MaxCount": 3}),
}
ec2.get_waiter("instance_running").wait(InstanceIds=ids, WaiterConfig={"Delay": 1})
found = ec2.describe_instances(Filters=[{"Name": "client-token", "Values": ["launch-1"]}])
instances = [i for r in found["Reservations"] for i in r["Instances"]]
facts["instances"] = [
    [
        i["AmiLaunchIndex"],
        i["State"]["Name"],
        i["Placement"]["AvailabilityZone"],
        i["PublicIpAddress"].split(".")[0],
        len(i["NetworkInterfaces"][0]["Ipv6Addresses"]),
        i["MetadataOptions"]["HttpTokens"],
        i["Tags"],
    ]
    for i in instances
]
data = ec2.describe_instance_attribute(InstanceId=ids[0], Attribute="userData")["UserData"]["Value"]
facts["userData"] = base64.b64decode(data).decode()
volumes = ec2.describe_volumes(Filters=[{"Name": "attachment.instance-id", "Values": ids}])["Volumes"]
facts["volumes"] = [[v["Size"], v["VolumeType"], v["Iops"], v["Tags"][0]["Value"]] for v in volumes]
ec2.create_tags(Resources=ids, Tags=[{"Key": "team", "Value": "qa"}])
ec2.delete_tags(Resources=ids[:1], Tags=[{"Key": "team"}])
tagged = ec2.describe_instances(Filters=[{"Name": "tag:team", "Values": ["q*"]}])["Reservations"]
facts["tagged"] = [i["InstanceId"] for r in tagged for i in r["Instances"]] == ids[1:]
status = ec2.describe_instance_status(InstanceIds=ids)["InstanceStatuses"]
facts["status"] = [s["InstanceStatus"]["Status"] for s in status]
absent = "i-0123456789abcdef0"
facts["refused"] = {
    "dryRun": refused(ec2.run_instances, DryRun=True, **{**launch, "ClientToken": "dry"}),
    "image": refused(ec2.run_instances, ImageId="ami-0123456789abcdef0", MinCount=1, MaxCount=1, InstanceType="m5.large"),
    "type": refused(ec2.run_instances, **{**launch, "ClientToken": "type", "InstanceType": "m5.tiny"}),
    "key": refused(ec2.run_instances, **{**launch, "ClientToken": "key", "KeyName": "other"}),
    "terminate": refused(ec2.terminate_instances, InstanceIds=[*ids, absent]),
    "malformed": refused(ec2.describe_instances, InstanceIds=["i-xyz"]),
    "reservedTag": refused(ec2.create_tags, Resources=ids, Tags=[{"Key": "aws:x", "Value": ""}]),
    "filter": refused(ec2.describe_instances, Filters=[{"Name": "colour", "Values": ["red"]}]),
}
ec2.terminate_instances(InstanceIds=ids)
ec2.get_waiter("instance_terminated").wait(InstanceIds=ids, WaiterConfig={"Delay": 1})
ended = [i for r in ec2.describe_instances(InstanceIds=ids)["Reservations"] for i in r["Instances"]]
facts["ended"] = [[i["State"]["Name"], i["StateReason"]["Code"], "VpcId" in i] for i in ended]
facts["leftVolumes"] = ec2.describe_volumes()["Volumes"]
facts["leftInterfaces"] = ec2.describe_network_interfaces()["NetworkInterfaces"]

# The life of an image, from an object, and from blocks.
disk = b"a" * BLOCK + b"b" * BLOCK
with_style = client("s3", s3={"addressing_style": "virtual"})
s3.upload_fileobj(io.BytesIO(disk), "acme-images", "disk.raw", ExtraArgs={"Tagging": "team=qa"})
upload = s3.create_multipart_upload(Bucket="acme-images", Key="parts.raw")["UploadId"]
part = {"Bucket": "acme-images", "Key": "parts.raw", "UploadId": upload}
parts = [
    {"PartNumber": n, "ETag": s3.upload_part(**part, PartNumber=n, Body=b"x" * size)["ETag"]}
    for n, size in ((1, 5 * 2**20), (2, 10))
]
facts["openUploads"] = [u["Key"] for u in s3.list_multipart_uploads(Bucket="acme-images")["Uploads"]]
s3.complete_multipart_upload(**part, MultipartUpload={"Parts": parts})
facts["objects"] = {
    "listed": [[o["Key"], o["Size"]] for o in s3.list_objects_v2(Bucket="acme-images")["Contents"]],
    "tags": s3.get_object_tagging(Bucket="acme-images", Key="disk.raw")["TagSet"],
    "same": s3.get_object(Bucket="acme-images", Key="disk.raw")["Body"].read() == disk,
    "wrongHash": refused(s3.put_object, Bucket="acme-images", Key="x", Body=b"x", ContentMD5="1B2M2Y8AsgTpgAmY7PhCfg=="),
    "bucket": refused(s3.list_objects_v2, Bucket="other-bucket"),
}
task = ec2.import_snapshot(
    DiskContainer={"Format": "RAW", "UserBucket": {"S3Bucket": "acme-images", "S3Key": "disk.raw"}},
    ClientToken="import-1",
    TagSpecifications=[{"ResourceType": "import-snapshot-task", "Tags": [{"Key": "build", "Value": "1"}]}],
)["ImportTaskId"]
detail = ended_import(task)
failing = ec2.import_snapshot(
    DiskContainer={"Format": "VMDK", "UserBucket": {"S3Bucket": "acme-images", "S3Key": "disk.raw"}}
)["ImportTaskId"]
failed = ended_import(failing)
facts["imported"] = [detail["Status"], "SnapshotId" in detail, failed["Status"], "VMDK" in failed["StatusMessage"]]
s3.delete_object(Bucket="acme-images", Key="disk.raw")

ebs = client("ebs")
written = ebs.start_snapshot(VolumeSize=1, Tags=[{"Key": "build", "Value": "2"}], ClientToken="write-1")["SnapshotId"]
sums = []
for index in range(2):
    block = disk[index * BLOCK : (index + 1) * BLOCK]
    sums.append(hashlib.sha256(block).digest())
    put = {"SnapshotId": written, "BlockIndex": index, "DataLength": BLOCK, "ChecksumAlgorithm": "SHA256"}
    ebs.put_snapshot_block(**put, BlockData=block, Checksum=base64.b64encode(sums[-1]).decode())
facts["wrongBlock"] = refused(ebs.put_snapshot_block, **put, BlockData=block, Checksum=base64.b64encode(sums[0]).decode())
total = base64.b64encode(hashlib.sha256(b"".join(sums)).digest()).decode()
complete = {"SnapshotId": written, "ChecksumAlgorithm": "SHA256", "ChecksumAggregationMethod": "LINEAR"}
facts["wrongCount"] = refused(ebs.complete_snapshot, **complete, ChangedBlocksCount=3, Checksum=total)
ebs.complete_snapshot(**complete, ChangedBlocksCount=2, Checksum=total)
ec2.get_waiter("snapshot_completed").wait(SnapshotIds=[written], WaiterConfig={"Delay": 1})
image = {
    "Architecture": "x86_64",
    "RootDeviceName": "/dev/sda1",
    "VirtualizationType": "hvm",
    "EnaSupport": True,
    "ImdsSupport": "v2.0",
    "BlockDeviceMappings": [{"DeviceName": "/dev/sda1", "Ebs": {"SnapshotId": written, "VolumeType": "gp3"}}],
}
ami = ec2.register_image(Name="ci-image-1", **image)["ImageId"]
facts["sameName"] = refused(ec2.register_image, Name="ci-image-1", **image)
ec2.create_tags(Resources=[ami], Tags=[{"Key": "build", "Value": "2"}])
mine = ec2.describe_images(Owners=["self"], Filters=[{"Name": "name", "Values": ["ci-*"]}])["Images"]
facts["image"] = [[i["State"], i["ImdsSupport"], i["BlockDeviceMappings"][0]["Ebs"]["VolumeSize"]] for i in mine]
run = ec2.run_instances(ImageId=ami, InstanceType="t3.micro", MinCount=1, MaxCount=1)["Instances"][0]
facts["ownImage"] = [run["RootDeviceName"], run["MetadataOptions"]["HttpTokens"]]
ec2.terminate_instances(InstanceIds=[run["InstanceId"]])
west = client("ec2", "us-west-2")
copy = west.copy_image(Name="ci-image-1", SourceImageId=ami, SourceRegion="us-east-1", CopyImageTags=True)["ImageId"]
west.get_waiter("image_available").wait(ImageIds=[copy], WaiterConfig={"Delay": 1})
copied = west.describe_images(ImageIds=[copy])["Images"][0]
facts["copy"] = [copied["Tags"], copied["BlockDeviceMappings"][0]["Ebs"]["SnapshotId"] != written]
facts["inUse"] = refused(ec2.delete_snapshot, SnapshotId=written)
ec2.deregister_image(ImageId=ami)
for snapshot in (written, detail["SnapshotId"]):
    ec2.delete_snapshot(SnapshotId=snapshot)
facts["goneImage"] = refused(ec2.describe_images, ImageIds=[ami])
facts["leftSnapshots"] = ec2.describe_snapshots(OwnerIds=["self"])["Snapshots"]

# The queue of interruptions.
sqs = client("sqs")
sqs.purge_queue(QueueUrl=setup["queueUrl"])
spot = ec2.run_instances(
    ImageId=setup["publicImageId"],
    InstanceType="c5.large",
    MinCount=1,
    MaxCount=1,
    InstanceMarketOptions={"MarketType": "spot", "SpotOptions": {"SpotInstanceType": "one-time"}},
)["Instances"][0]
# All events of the launch have arrived when the instance runs.
ec2.get_waiter("instance_running").wait(InstanceIds=[spot["InstanceId"]], WaiterConfig={"Delay": 1})
requests = ec2.describe_spot_instance_requests(SpotInstanceRequestIds=[spot["SpotInstanceRequestId"]])
facts["spot"] = [spot["InstanceLifecycle"], requests["SpotInstanceRequests"][0]["Status"]["Code"]]
messages = sqs.receive_message(QueueUrl=setup["queueUrl"], MaxNumberOfMessages=10)["Messages"]
bodies = [json.loads(m["Body"]) for m in messages]
facts["events"] = [[b["source"], b["detail-type"], b["detail"]["state"]] for b in bodies]
sqs.delete_message_batch(
    QueueUrl=setup["queueUrl"],
    Entries=[{"Id": str(n), "ReceiptHandle": m["ReceiptHandle"]} for n, m in enumerate(messages)],
)
facts["queue"] = "Messages" in sqs.receive_message(QueueUrl=setup["queueUrl"], VisibilityTimeout=0)
ec2.terminate_instances(InstanceIds=[spot["InstanceId"]])
hosts = ec2.allocate_hosts(InstanceType="m5.large", AvailabilityZone="us-east-1a", Quantity=1)["HostIds"]
placement = {"Tenancy": "host", "HostId": hosts[0], "AvailabilityZone": "us-east-1a"}
hosted = ec2.run_instances(
    ImageId=setup["publicImageId"], InstanceType="m5.large", MinCount=1, MaxCount=1, Placement=placement
)["Instances"][0]
occupied = ec2.release_hosts(HostIds=hosts)["Unsuccessful"][0]["Error"]["Code"]
ec2.terminate_instances(InstanceIds=[hosted["InstanceId"]])
ec2.get_waiter("instance_terminated").wait(InstanceIds=[hosted["InstanceId"]], WaiterConfig={"Delay": 1})
facts["host"] = [occupied, ec2.release_hosts(HostIds=hosts)["Successful"] == hosts]
print(json.dumps(facts))
