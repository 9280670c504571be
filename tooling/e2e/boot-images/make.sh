#!/bin/bash
# make.sh FOLDER: builds three bootable images of Debian for boot-images.test.ts, as root:
# good.raw, late.raw (its sshd starts a minute late) and no-sshd.raw.
# Needs debootstrap, syslinux, syslinux-common, mtools, dosfstools, e2fsprogs and fdisk; mounts nothing.
set -euo pipefail
folder=$1
# By default, the mirror from which this machine installs Debian 12.
mirror=${DIB_DISTRIBUTION_MIRROR:-$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Codename: bookworm' | sed -n 1p)}
: "${mirror:?apt has no source for bookworm; set DIB_DISTRIBUTION_MIRROR to the address of a Debian mirror}"
root=$folder/root
packages=linux-image-cloud-amd64,systemd-sysv,openssh-server,cloud-init,python3,python3-cffi-backend,ifupdown
packages+=,isc-dhcp-client,iproute2,sudo,netbase,udev,dbus

mkdir -p "$folder"
[ -e "$root/vmlinuz" ] || debootstrap --variant=minbase --include="$packages" bookworm "$root" "$mirror"
rm -rf "$root"/var/cache/apt/archives/*.deb "$root"/var/lib/apt/lists/* "$root"/usr/share/{doc,man}
rm -f "$root"/etc/ssh/ssh_host_*
echo 'datasource_list: [ NoCloud, None ]' >"$root/etc/cloud/cloud.cfg.d/90.cfg"

# image ROOT FILE: a disk with a FAT partition for syslinux and the kernel, and an ext4 partition.
image() {
  local from=$1 to=$2 work size
  work=$(mktemp -d -p "$folder")
  size=$(($(du -sm "$from" | cut -f1) + 200))
  truncate -s 100M "$work/boot"
  mkfs.vfat "$work/boot" >/dev/null
  mcopy -i "$work/boot" "$(echo "$from"/boot/vmlinuz-*)" ::vmlinuz
  mcopy -i "$work/boot" "$(echo "$from"/boot/initrd.img-*)" ::initrd
  printf '%s\n' 'DEFAULT linux' 'LABEL linux' ' KERNEL vmlinuz' \
    ' APPEND initrd=initrd root=/dev/vda2 rw console=ttyS0 quiet net.ifnames=0 no_timer_check' >"$work/syslinux.cfg"
  mcopy -i "$work/boot" "$work/syslinux.cfg" ::syslinux.cfg
  syslinux --install "$work/boot"
  truncate -s "${size}M" "$work/root"
  mkfs.ext4 -q -F -d "$from" "$work/root"
  truncate -s "$((size + 102))M" "$to.new"
  printf 'label: dos\nstart=2048, size=204800, type=c, bootable\nstart=206848, size=%d, type=83\n' "$((size * 2048))" |
    sfdisk -q "$to.new"
  dd if=/usr/lib/syslinux/mbr/mbr.bin of="$to.new" bs=440 count=1 conv=notrunc status=none
  dd if="$work/boot" of="$to.new" bs=1M seek=1 conv=notrunc,sparse status=none
  dd if="$work/root" of="$to.new" bs=1M seek=101 conv=notrunc,sparse status=none
  rm -r "$work"
  mv "$to.new" "$to"
}

ssh=$root/etc/systemd/system
rm -rf "$ssh/ssh.service" "$ssh/ssh.service.d"
image "$root" "$folder/good.raw"
mkdir -p "$ssh/ssh.service.d"
printf '[Service]\nExecStartPre=/bin/sleep 60\nTimeoutStartSec=180\n' >"$ssh/ssh.service.d/late.conf"
image "$root" "$folder/late.raw"
rm -r "$ssh/ssh.service.d"
ln -s /dev/null "$ssh/ssh.service"
image "$root" "$folder/no-sshd.raw"
rm "$ssh/ssh.service"
