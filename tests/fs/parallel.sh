#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
# 64 readers beside writers: every answer whole, nothing lost.
. "$(dirname "$0")/lib.sh"

start topology=4x16M:cpus=1
cd "$MNT" || fail "cannot enter the mount"
cat stats/buddyinfo >"$DIR/initial"

# One process with 64 threads reads; a complaint a line.
python3 - >"$DIR/readers" 2>&1 <<'END' &
import os, re, threading

FILES = {
    "stats/buddyinfo": rb"(Node \d+, zone +\w+( +\d+){11} *\n){4}",
    "stats/all": rb"([^ \n]+ [^ \n]+\n)+",
    "weights/node0": rb"\d+\n",
    "tasks/default/policy": rb"(interleave:0-3|weighted interleave:0-1)\n",
    "nodes/node2/meminfo": rb"(Node 2 .*\n)+",
    "nodes/online": rb"0-3\n",
    "stats/zoneinfo": rb"Node 0, zone(.*\n)+",
    "README": rb"(.*\n)+",
    "last_cmd_status": rb".+\n",
}

def read(path):
    fd = os.open(path, os.O_RDONLY)
    text = b""
    while True:
        part = os.read(fd, 1000)
        if not part:
            break
        text += part
    os.close(fd)
    return text

def reader(number):
    for _ in range(6):
        for path, pattern in FILES.items():
            try:
                text = read(path)
                if not re.fullmatch(pattern, text):
                    print(path, text[:300])
            except OSError as error:
                print(path, error)
        for name in os.listdir("live"):
            try:
                read("live/%s/placement" % name)
                os.stat("live/%s/data" % name)
            except OSError:
                pass  # freed meanwhile

echo = os.open("tasks/default/policy", os.O_WRONLY)
os.write(echo, b"interleave:0-3\n")
threads = [threading.Thread(target=reader, args=(i,)) for i in range(64)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
END
readers=$!

# writer NAME: allocates, looks, frees; a complaint a line
writer() {
	i=0
	while [ $i -lt 40 ]; do
		echo "$1$i count=50 policy=interleave:0-3" >alloc/pages || echo "alloc $1$i"
		is_placed=$(tr '\n' ' ' <"live/$1$i/placement")
		[ "$is_placed" = "node0 13 node1 13 node2 12 node3 12 " ] || echo "$1$i: $is_placed"
		rmdir "live/$1$i" || echo "rmdir $1$i"
		echo $((i + 1)) >weights/node0 || echo "weights/node0"
		i=$((i + 1))
	done
}
writer a >"$DIR/writer1" 2>&1 &
one=$!
writer b >"$DIR/writer2" 2>&1 &
two=$!
wait $one $two $readers
cat "$DIR/readers" "$DIR/writer1" "$DIR/writer2" >"$DIR/complaints"
is "complaints" "$(head -n 5 "$DIR/complaints")" ""
is "names left" "$(ls live)" ""
drained | cmp - "$DIR/initial" || fail "pages lost"
check_engine
cd /
stop
