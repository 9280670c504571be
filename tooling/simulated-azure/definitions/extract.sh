#!/bin/sh
# Makes the definitions again: extract.sh FOLDER, where `npm install` has put the libraries that README.md names.
set -eu
here=$(dirname "$(realpath "$0")")
libraries=$(realpath "$1")/node_modules/@azure

part() {
  name=$1
  shift
  node "$here/extract.mjs" "$libraries/arm-$name" "$@" >"$here/$name.json"
}

part compute \
  virtualMachines.createOrUpdate virtualMachines.get virtualMachines.update virtualMachines.delete \
  virtualMachines.list virtualMachines.listAll virtualMachines.instanceView \
  disks.createOrUpdate disks.get disks.update disks.delete disks.listByResourceGroup disks.grantAccess disks.revokeAccess \
  images.createOrUpdate images.get images.update images.delete images.list images.listByResourceGroup \
  resourceSkus.list usageOperations.list
part network \
  networkInterfaces.get networkInterfaces.list networkInterfaces.updateTags networkInterfaces.delete \
  publicIPAddresses.get publicIPAddresses.list publicIPAddresses.updateTags publicIPAddresses.delete \
  virtualNetworks.get virtualNetworks.list subnets.get \
  -- ApplicationGatewayBackendAddressPool ApplicationGatewayIPConfiguration ApplicationSecurityGroup BackendAddressPool \
  InboundNatRule NatGateway NetworkInterfaceTapConfiguration NetworkSecurityGroup PrivateEndpoint PrivateLinkService \
  RouteTable ServiceEndpointPolicy VirtualNetworkTap FlowLog
part resources \
  resourceGroups.get resourceGroups.list resourceGroups.createOrUpdate
