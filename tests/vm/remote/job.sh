# The guest does what the host says, command by command.
exec python3 -B "$(dirname "$0")/agent.py"
