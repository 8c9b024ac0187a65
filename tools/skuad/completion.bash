# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# Completion of skuad and skuactl, for bash: `. tools/skuad/completion.bash`. What there is to choose
# from is asked of the programs themselves.

# Long options in the help of a command.
_skua_options() {
	"$@" --help 2>/dev/null | grep -oE -- '--[a-z][a-z-]*' | sort -u
}

_skua_reply() {
	mapfile -t COMPREPLY < <(compgen -W "$1" -- "${COMP_WORDS[COMP_CWORD]}")
}

_skuad() {
	case ${COMP_WORDS[COMP_CWORD - 1]} in
	--config | --control) mapfile -t COMPREPLY < <(compgen -f -- "${COMP_WORDS[COMP_CWORD]}") ;;
	*) _skua_reply "$(_skua_options "$1")" ;;
	esac
}

# Lines of skuactl's help that begin with so many spaces and a lower-case word, without the spaces.
_skuactl_lines() {
	"$1" --help | sed -n "/^Commands:/,\$s/^ \\{$2\\}\\([a-z][a-z-]*\\(, [a-z-]*\\)*\\).*/\\1/p" | tr -d ,
}

_skuactl() {
	local words=() socket=() i

	for ((i = 1; i < COMP_CWORD; i++)); do
		case ${COMP_WORDS[i]} in
		-s | --socket) socket=(-s "${COMP_WORDS[++i]}") ;;
		-[inw] | --interval | --rounds | --write) i=$((i + 1)) ;;
		-*) ;;
		*) words+=("${COMP_WORDS[i]}") ;;
		esac
	done
	case ${COMP_WORDS[COMP_CWORD - 1]} in
	-[sw] | --socket | --write)
		mapfile -t COMPREPLY < <(compgen -f -- "${COMP_WORDS[COMP_CWORD]}")
		return
		;;
	esac
	case ${#words[@]}:${words[0]-}:${COMP_WORDS[COMP_CWORD]} in
	*:-*) _skua_reply "$(_skua_options "$1")" ;;
	0:*) _skua_reply "$(_skuactl_lines "$1" 2)" ;;
	1:devices:*) ;;
	1:*) _skua_reply "$("$1" "${socket[@]}" devices 2>/dev/null | sed -n '1!s/ .*//p')" ;;
	2:link:*) _skua_reply 'up down' ;;
	2:inject:*) _skua_reply "$(_skuactl_lines "$1" 6)" ;;
	2:impair:*) _skua_reply none ;;
	esac
}

complete -o default -F _skuad skuad
complete -o default -F _skuactl skuactl
