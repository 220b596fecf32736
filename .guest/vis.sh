cd /tmp/wt/scen/.guest
export PYTHONPATH=/tmp/wt/scen PATH=/work/main/.venv/bin:$PATH PYTHONDONTWRITEBYTECODE=1
python -m replayer run visibility --target nfs=/nfs/sync,/nfs/sync2 -o vis-nfs > vis-nfs.txt 2>&1; echo vis code $?
python -m replayer run close-to-open -t 30s --target nfs=/nfs/sync,/nfs/sync2 -o c2o-nfs > c2o-nfs.txt 2>&1; echo c2o code $?
python -m replayer run lock-contention -u 4 -t 15s --target nfs=/nfs/sync,/nfs/sync2 -o lock-nfs > lock-nfs.txt 2>&1; echo lock code $?
