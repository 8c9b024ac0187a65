// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The module: learns of the two devices, and takes orders by debugfs.
 */
#include <linux/debugfs.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/pci.h>
#include <linux/seq_buf.h>
#include <linux/seq_file.h>

#include "skua_selftest.h"

static const char *const st_names[] = { "skua_0", "skua_1" };
static struct ib_device *st_devs[2];
/* The devices, and all that is done with them: they are not removed meanwhile. */
static DEFINE_MUTEX(st_lock);
static struct dentry *st_dir;
static char st_tap[16384];
static struct seq_buf st_said;

static int st_add(struct ib_device *dev)
{
	unsigned int i;

	mutex_lock(&st_lock);
	for (i = 0; i < ARRAY_SIZE(st_names); i++)
		if (!strcmp(dev_name(&dev->dev), st_names[i]))
			st_devs[i] = dev;
	mutex_unlock(&st_lock);
	return 0;
}

static void st_remove(struct ib_device *dev, void *client_data)
{
	unsigned int i;

	mutex_lock(&st_lock);
	st_release(dev);
	st_death_end(dev);
	st_xrc_end(dev);
	for (i = 0; i < ARRAY_SIZE(st_devs); i++)
		if (st_devs[i] == dev)
			st_devs[i] = NULL;
	mutex_unlock(&st_lock);
}

static struct ib_client st_client = {
	.name = "skua_selftest",
	.add = st_add,
	.remove = st_remove,
};

static int st_run_show(struct seq_file *file, void *data)
{
	mutex_lock(&st_lock);
	seq_write(file, st_said.buffer, seq_buf_used(&st_said));
	mutex_unlock(&st_lock);
	return 0;
}

static ssize_t st_run_write(struct file *file, const char __user *data, size_t size, loff_t *pos)
{
	ssize_t ret = -ENODEV;

	mutex_lock(&st_lock);
	seq_buf_init(&st_said, st_tap, sizeof(st_tap));
	if (st_devs[0] && st_devs[1]) {
		st_run(st_devs, &st_said);
		ret = size;
	}
	mutex_unlock(&st_lock);
	return ret;
}

DEFINE_SHOW_STORE_ATTRIBUTE(st_run);

/* What a file is told: an index of st_polls, or "end", which is ST_POLLS; or an errno. */
static int st_asked(const char __user *data, size_t size)
{
	char text[16] = {};
	int poll;

	if (size >= sizeof(text))
		return -EINVAL;
	if (copy_from_user(text, data, size))
		return -EFAULT;
	if (sysfs_streq(text, "end"))
		return ST_POLLS;
	for (poll = 0; poll < ST_POLLS; poll++)
		if (sysfs_streq(text, st_polls[poll].name))
			return poll;
	return -EINVAL;
}

static int st_hold_show(struct seq_file *file, void *data)
{
	struct seq_buf out;
	char text[128];

	seq_buf_init(&out, text, sizeof(text));
	mutex_lock(&st_lock);
	st_hold_tell(&out);
	mutex_unlock(&st_lock);
	seq_write(file, text, seq_buf_used(&out));
	return 0;
}

static ssize_t st_hold_write(struct file *file, const char __user *data, size_t size, loff_t *pos)
{
	int poll = st_asked(data, size);
	int err = -ENODEV;

	if (poll < 0)
		return poll;
	mutex_lock(&st_lock);
	if (poll == ST_POLLS) {
		st_release(NULL);
		err = 0;
	} else if (st_devs[0] && st_devs[1]) {
		err = st_hold(st_devs, st_polls[poll].context);
	}
	mutex_unlock(&st_lock);
	return err ?: size;
}

DEFINE_SHOW_STORE_ATTRIBUTE(st_hold);

static int st_death_show(struct seq_file *file, void *data)
{
	struct seq_buf out;
	char text[256];

	seq_buf_init(&out, text, sizeof(text));
	mutex_lock(&st_lock);
	st_death_tell(&out);
	mutex_unlock(&st_lock);
	seq_write(file, text, seq_buf_used(&out));
	return 0;
}

static ssize_t st_death_write(struct file *file, const char __user *data, size_t size, loff_t *pos)
{
	int poll = st_asked(data, size);
	int err = -ENODEV;

	if (poll < 0)
		return poll;
	mutex_lock(&st_lock);
	if (poll == ST_POLLS) {
		st_death_end(NULL);
		err = 0;
	} else if (st_devs[0] && st_devs[1]) {
		err = st_death(st_devs, st_polls[poll].context);
	}
	mutex_unlock(&st_lock);
	return err ?: size;
}

DEFINE_SHOW_STORE_ATTRIBUTE(st_death);

static int st_carrier_show(struct seq_file *file, void *data)
{
	seq_printf(file, "%s\n", st_carrier_tell());
	return 0;
}

static ssize_t st_carrier_write(struct file *file, const char __user *data, size_t size,
				loff_t *pos)
{
	bool hold;
	int err;

	err = kstrtobool_from_user(data, size, &hold);
	if (err)
		return err;
	mutex_lock(&st_lock);
	if (!hold)
		st_carrier_end();
	else
		err = st_devs[0] ? st_carrier_hold(st_devs[0]) : -ENODEV;
	mutex_unlock(&st_lock);
	return err ?: size;
}

DEFINE_SHOW_STORE_ATTRIBUTE(st_carrier);

static int st_xrc_show(struct seq_file *file, void *data)
{
	struct seq_buf out;
	char text[256];

	seq_buf_init(&out, text, sizeof(text));
	mutex_lock(&st_lock);
	st_xrc_tell(&out);
	mutex_unlock(&st_lock);
	seq_write(file, text, seq_buf_used(&out));
	return 0;
}

static ssize_t st_xrc_write(struct file *file, const char __user *data, size_t size, loff_t *pos)
{
	char text[64] = {};
	int err = -ENODEV;

	if (size >= sizeof(text))
		return -EINVAL;
	if (copy_from_user(text, data, size))
		return -EFAULT;
	mutex_lock(&st_lock);
	if (st_devs[0] && st_devs[1])
		err = st_xrc_step(st_devs, text);
	mutex_unlock(&st_lock);
	return err ?: size;
}

DEFINE_SHOW_STORE_ATTRIBUTE(st_xrc);

static ssize_t st_make_write(struct file *file, const char __user *data, size_t size, loff_t *pos)
{
	int err = -ENODEV;

	mutex_lock(&st_lock);
	if (st_devs[0] && st_devs[1])
		err = st_make(st_devs);
	mutex_unlock(&st_lock);
	return err ?: size;
}

static const struct file_operations st_make_fops = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.write = st_make_write,
};

/*
 * As when the machine is shut down. That waits for a removal of the RDMA device, which waits for
 * st_lock.
 */
static ssize_t st_shutdown_write(struct file *file, const char __user *data, size_t size,
				 loff_t *pos)
{
	struct device *device = NULL;
	int err = -ENODEV;

	mutex_lock(&st_lock);
	if (st_devs[0])
		device = get_device(st_devs[0]->dev.parent);
	mutex_unlock(&st_lock);
	if (!device)
		return err;
	device_lock(device);
	if (device->driver) {
		to_pci_driver(device->driver)->shutdown(to_pci_dev(device));
		err = 0;
	}
	device_unlock(device);
	put_device(device);
	return err ?: size;
}

static const struct file_operations st_shutdown_fops = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.write = st_shutdown_write,
};

static int __init st_init(void)
{
	int err;

	seq_buf_init(&st_said, st_tap, sizeof(st_tap));
	err = ib_register_client(&st_client);
	if (err)
		return err;
	st_dir = debugfs_create_dir("skua_selftest", NULL);
	debugfs_create_file("run", 0600, st_dir, NULL, &st_run_fops);
	debugfs_create_file("hold", 0600, st_dir, NULL, &st_hold_fops);
	debugfs_create_file("death", 0600, st_dir, NULL, &st_death_fops);
	debugfs_create_file("carrier", 0600, st_dir, NULL, &st_carrier_fops);
	debugfs_create_file("xrc", 0600, st_dir, NULL, &st_xrc_fops);
	debugfs_create_file("make", 0200, st_dir, NULL, &st_make_fops);
	debugfs_create_file("shutdown", 0200, st_dir, NULL, &st_shutdown_fops);
	return 0;
}

static void __exit st_exit(void)
{
	debugfs_remove_recursive(st_dir);
	st_carrier_end();
	ib_unregister_client(&st_client);
}

module_init(st_init);
module_exit(st_exit);

MODULE_DESCRIPTION("Tests of Skua's verbs in the kernel");
MODULE_LICENSE("Dual BSD/GPL");
