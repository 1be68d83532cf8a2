# Sourced by what runs containers: podman's settings where cgroups are of both kinds and limits may not be raised, as in
# nested containers. CONTAINERS_CONF that is set stays. Wants $work, a folder.
cat >"$work/containers.conf" <<'CONF'
[containers]
default_ulimits=["nofile=1024:1024","nproc=1024:1024"]
[engine]
runtime="runc"
cgroup_manager="cgroupfs"
CONF
export CONTAINERS_CONF=${CONTAINERS_CONF:-$work/containers.conf}
