cd /tmp/wt/scen
export PYTHONPATH=/tmp/wt/scen PATH=/work/main/.venv/bin:$PATH PYTHONDONTWRITEBYTECODE=1
for n in tar copy rm cp php rsync; do for m in async sync; do echo == $m $(cut -d. -f1 /proc/uptime); timeout 400 python -m tests.bench.predicted /nfs/$m --turns 5 --only $n 2>&1 | tail -4; done; done
