cd /tmp/wt/scen
export PYTHONPATH=/tmp/wt/scen PATH=/work/main/.venv/bin:$PATH PYTHONDONTWRITEBYTECODE=1
python .guest/rpc.py tar:sync:2 tar:async:2 copy:sync:2 copy:async:2 tar:sync:1 tar:async:1 copy:sync:1 copy:async:1 2>&1
rm -rf .guest/vis-nfs; python -m replayer run visibility -t 80s --target nfs=/nfs/sync,/nfs/sync2 -o .guest/vis-nfs > .guest/vis-nfs.txt 2>&1; echo vis code $?
python .guest/rpc.py rm:sync:2 cp:sync:2 php:sync:2 rm:async:2 2>&1
