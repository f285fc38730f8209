# SPDX-License-Identifier: GPL-2.0
#
# The targets. What they do is in tools/series; "make help" lists them.

TARGETS := help machines run demo shell base-run test bench validate figures lint mutants configs bisect static \
	 kernel base-kernel deb live live-test stick qemu replay tree port refresh lines series releases clean clean-cache

UNKNOWN := $(filter-out $(TARGETS),$(MAKECMDGOALS))
ifneq ($(UNKNOWN),)
$(error unknown target: $(UNKNOWN); there are: $(TARGETS))
endif

ifneq ($(words $(subst :, : ,$(CURDIR))),1)
$(error this clone is in "$(CURDIR)": the kernel builds in no path with a space or a colon)
endif

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: $(TARGETS) python

# For tools/series; each may also come from the environment. Passed on as typed, with every "$".
VARIABLES := MACHINE CPUS CMD FAULTS KERNEL APPEND KSRC BASE JOBS TIME TESTS MUTANTS CONFIGS \
	     FLAVOUR PART TREE
$(foreach v,$(VARIABLES),$(if $(value $v),$(eval override $v := $$(value $v))))
export $(VARIABLES)

ALLOWED := $(VARIABLES) PYTHON XDG_CACHE_HOME
MISSPELT := $(filter-out $(ALLOWED),$(foreach v,$(.VARIABLES),\
	      $(if $(filter command,$(origin $v)),$v)))
ifneq ($(MISSPELT),)
$(error unknown variable: $(MISSPELT); there are: $(ALLOWED))
endif

# The interpreter that apt's packages are for; any other from 3.11 on that has those of
# pyproject.toml: make PYTHON=...
PYTHON := /usr/bin/python3
TOP := $(patsubst %/,%,$(dir $(abspath $(lastword $(MAKEFILE_LIST)))))
PACKAGES := $(TOP)/tools:$(TOP)/tools/testing/virtual-silicon

$(TARGETS): python
	@PYTHONPATH="$(PACKAGES)" $(PYTHON) -m series $@

# A fresh machine may have no Python; everything else is installed by it.
python:
	@test -x /usr/bin/python3 || test $(PYTHON) != /usr/bin/python3 || { \
		get="apt-get install --yes --no-install-recommends python3"; \
		test "$$(id -u)" = 0 || get="sudo -n $$get"; \
		echo "packages: installing python3"; \
		$$get >/dev/null 2>&1 || { $${get%%apt-get*} apt-get update && $$get; } >/dev/null 2>&1 || \
		{ echo "python3 is missing and could not be installed; run: sudo apt-get install python3"; exit 1; }; }
	@$(PYTHON) -c "import sys; sys.version_info < (3, 11) and sys.exit('$(PYTHON): older than Python 3.11')"
