// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * An exporter of dma-bufs that obeys a test: it moves or does not, pins or does not, has pages or
 * a BAR, and takes a buffer back when it is told to.
 */
#include <linux/delay.h>
#include <linux/dma-buf.h>
#include <linux/dma-mapping.h>
#include <linux/dma-resv.h>
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/version.h>

#include "exporter.h"

#if LINUX_VERSION_CODE < KERNEL_VERSION(7, 0, 0)
#define dma_buf_invalidate_mappings	dma_buf_move_notify
#endif

#define EX_MAX_PAGES	SZ_64K

static atomic_t ex_buffers;
static atomic_t ex_mapped;
static atomic_t ex_pinned;

/**
 * struct ex_buffer - a buffer
 * @npages: its size
 * @phys: where it is, instead of @pages
 * @flags: SKUA_EXPORT_*
 * @attaching: attachments that were not pinned yet
 * @mapped: mappings that there are; under the lock of the dma-buf, as the next
 * @revoked: nobody may map it any more
 * @pages: its pages
 */
struct ex_buffer {
	unsigned int npages;
	phys_addr_t phys;
	u32 flags;
	atomic_t attaching;
	unsigned int mapped;
	bool revoked;
	struct page *pages[] __counted_by(npages);
};

static int ex_attach(struct dma_buf *dmabuf, struct dma_buf_attachment *attach)
{
	struct ex_buffer *buffer = dmabuf->priv;

	attach->priv = buffer;
	atomic_inc(&buffer->attaching);
	return 0;
}

static void ex_attached(struct dma_buf_attachment *attach)
{
	struct ex_buffer *buffer = attach->priv;

	attach->priv = NULL;
	if (buffer)
		atomic_dec(&buffer->attaching);
}

static void ex_detach(struct dma_buf *dmabuf, struct dma_buf_attachment *attach)
{
	ex_attached(attach);
}

static int ex_pin(struct dma_buf_attachment *attach)
{
	struct ex_buffer *buffer = attach->dmabuf->priv;

	dma_resv_assert_held(attach->dmabuf->resv);
	ex_attached(attach);
	if (buffer->revoked)
		return -ENODEV;
	if (buffer->flags & SKUA_EXPORT_UNPINNABLE)
		return -EOPNOTSUPP;
	atomic_inc(&ex_pinned);
	return 0;
}

static void ex_unpin(struct dma_buf_attachment *attach)
{
	dma_resv_assert_held(attach->dmabuf->resv);
	atomic_dec(&ex_pinned);
}

/* A BAR has no pages: only its DMA address is there. */
static int ex_map_phys(struct ex_buffer *buffer, struct device *device, struct sg_table *sgt,
		       enum dma_data_direction direction)
{
	size_t size = (size_t)buffer->npages << PAGE_SHIFT;
	dma_addr_t dma;
	int err;

	err = sg_alloc_table(sgt, 1, GFP_KERNEL);
	if (err)
		return err;
	dma = dma_map_resource(device, buffer->phys, size, direction, 0);
	if (dma_mapping_error(device, dma)) {
		sg_free_table(sgt);
		return -ENOMEM;
	}
	sgt->sgl->length = size;
	sg_dma_address(sgt->sgl) = dma;
	sg_dma_len(sgt->sgl) = size;
	return 0;
}

static int ex_map_pages(struct ex_buffer *buffer, struct device *device, struct sg_table *sgt,
			enum dma_data_direction direction)
{
	struct scatterlist *sg;
	unsigned int i;
	int err;

	err = sg_alloc_table(sgt, buffer->npages, GFP_KERNEL);
	if (err)
		return err;
	for_each_sgtable_sg(sgt, sg, i)
		sg_set_page(sg, buffer->pages[i], PAGE_SIZE, 0);
	err = dma_map_sgtable(device, sgt, direction, 0);
	if (err)
		sg_free_table(sgt);
	return err;
}

static struct sg_table *ex_map(struct dma_buf_attachment *attach,
			       enum dma_data_direction direction)
{
	struct ex_buffer *buffer = attach->dmabuf->priv;
	struct sg_table *sgt;
	int err;

	if (buffer->revoked)
		return ERR_PTR(-ENODEV);
	sgt = kzalloc(sizeof(*sgt), GFP_KERNEL);
	if (!sgt)
		return ERR_PTR(-ENOMEM);
	err = buffer->phys ? ex_map_phys(buffer, attach->dev, sgt, direction) :
			     ex_map_pages(buffer, attach->dev, sgt, direction);
	if (err) {
		kfree(sgt);
		return ERR_PTR(err);
	}
	buffer->mapped++;
	atomic_inc(&ex_mapped);
	return sgt;
}

static void ex_unmap(struct dma_buf_attachment *attach, struct sg_table *sgt,
		     enum dma_data_direction direction)
{
	struct ex_buffer *buffer = attach->dmabuf->priv;

	if (buffer->phys)
		dma_unmap_resource(attach->dev, sg_dma_address(sgt->sgl), sg_dma_len(sgt->sgl),
				   direction, 0);
	else
		dma_unmap_sgtable(attach->dev, sgt, direction, 0);
	sg_free_table(sgt);
	kfree(sgt);
	buffer->mapped--;
	atomic_dec(&ex_mapped);
}

static void ex_free(struct ex_buffer *buffer)
{
	unsigned int i;

	for (i = 0; i < buffer->npages && !buffer->phys; i++)
		if (buffer->pages[i])
			__free_page(buffer->pages[i]);
	kvfree(buffer);
	atomic_dec(&ex_buffers);
}

static void ex_release(struct dma_buf *dmabuf)
{
	ex_free(dmabuf->priv);
}

static int ex_mmap(struct dma_buf *dmabuf, struct vm_area_struct *vma)
{
	struct ex_buffer *buffer = dmabuf->priv;

	if (buffer->phys)
		return -ENODEV;
	return vm_map_pages(vma, buffer->pages, buffer->npages);
}

static const struct dma_buf_ops ex_static_ops = {
	.map_dma_buf = ex_map,
	.unmap_dma_buf = ex_unmap,
	.release = ex_release,
	.mmap = ex_mmap,
};

static const struct dma_buf_ops ex_dynamic_ops = {
	.attach = ex_attach,
	.detach = ex_detach,
	.pin = ex_pin,
	.unpin = ex_unpin,
	.map_dma_buf = ex_map,
	.unmap_dma_buf = ex_unmap,
	.release = ex_release,
	.mmap = ex_mmap,
};

/* From the end, so that they are not in the order in which they come. */
static bool ex_alloc_pages(struct ex_buffer *buffer)
{
	unsigned int order = buffer->flags & SKUA_EXPORT_PAIRS ? 1 : 0;
	unsigned int i = buffer->npages, j;
	struct page *page;

	while (i) {
		page = alloc_pages(GFP_HIGHUSER | __GFP_ZERO, order);
		if (!page)
			return false;
		split_page(page, order);
		i -= 1 << order;
		for (j = 0; j < 1 << order; j++)
			buffer->pages[i + j] = page + j;
	}
	return true;
}

static struct ex_buffer *ex_alloc(const struct skua_export *export)
{
	unsigned int n = export->size >> PAGE_SHIFT;
	struct ex_buffer *buffer;

	if (!n || !PAGE_ALIGNED(export->size) || export->size >> PAGE_SHIFT > EX_MAX_PAGES ||
	    !PAGE_ALIGNED(export->phys) || export->flags & ~SKUA_EXPORT_FLAGS)
		return ERR_PTR(-EINVAL);
	if (n % 2 && export->flags & SKUA_EXPORT_PAIRS)
		return ERR_PTR(-EINVAL);
	buffer = kvzalloc(struct_size(buffer, pages, n), GFP_KERNEL);
	if (!buffer)
		return ERR_PTR(-ENOMEM);
	atomic_inc(&ex_buffers);
	buffer->npages = n;
	buffer->phys = export->phys;
	buffer->flags = export->flags;
	if (!buffer->phys && !ex_alloc_pages(buffer)) {
		ex_free(buffer);
		return ERR_PTR(-ENOMEM);
	}
	return buffer;
}

static int ex_export(struct skua_export __user *arg)
{
	DEFINE_DMA_BUF_EXPORT_INFO(info);
	struct skua_export export;
	struct ex_buffer *buffer;
	struct dma_buf *dmabuf;
	int fd;

	if (copy_from_user(&export, arg, sizeof(export)))
		return -EFAULT;
	buffer = ex_alloc(&export);
	if (IS_ERR(buffer))
		return PTR_ERR(buffer);
	info.ops = export.flags & SKUA_EXPORT_STATIC ? &ex_static_ops : &ex_dynamic_ops;
	info.size = export.size;
	info.flags = O_RDWR | O_CLOEXEC;
	info.priv = buffer;
	dmabuf = dma_buf_export(&info);
	if (IS_ERR(dmabuf)) {
		ex_free(buffer);
		return PTR_ERR(dmabuf);
	}
	fd = dma_buf_fd(dmabuf, O_CLOEXEC);
	if (fd < 0) {
		dma_buf_put(dmabuf);
		return fd;
	}
	/* The program has the descriptor, whether it hears of it or not. */
	return put_user(fd, &arg->fd);
}

/*
 * A buffer may be taken back at any time. But with lockdep, ib_umem_dmabuf_unmap_pages() of the
 * core looks at the attachment, which the core stores only after it has become visible here: a
 * NULL pointer. So with lockdep, those that attach pin first.
 */
static void ex_lock(struct dma_buf *dmabuf)
{
	struct ex_buffer *buffer = dmabuf->priv;

	dma_resv_lock(dmabuf->resv, NULL);
	while (IS_ENABLED(CONFIG_LOCKDEP) && atomic_read(&buffer->attaching)) {
		dma_resv_unlock(dmabuf->resv);
		usleep_range(10, 100);
		dma_resv_lock(dmabuf->resv, NULL);
	}
}

static int ex_revoke(const __s32 __user *arg)
{
	struct ex_buffer *buffer;
	struct dma_buf *dmabuf;
	int err = 0;
	__s32 fd;

	if (get_user(fd, arg))
		return -EFAULT;
	dmabuf = dma_buf_get(fd);
	if (IS_ERR(dmabuf))
		return PTR_ERR(dmabuf);
	if (dmabuf->ops != &ex_dynamic_ops) {
		dma_buf_put(dmabuf);
		return -EINVAL;
	}
	buffer = dmabuf->priv;
	ex_lock(dmabuf);
	buffer->revoked = true;
	dma_buf_invalidate_mappings(dmabuf);
	if (buffer->mapped)
		err = -EBUSY;
	dma_resv_unlock(dmabuf->resv);
	dma_buf_put(dmabuf);
	return err;
}

static int ex_count(struct skua_exported __user *arg)
{
	struct skua_exported count = {
		.buffers = atomic_read(&ex_buffers),
		.mapped = atomic_read(&ex_mapped),
		.pinned = atomic_read(&ex_pinned),
	};

	return copy_to_user(arg, &count, sizeof(count)) ? -EFAULT : 0;
}

static long ex_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	switch (cmd) {
	case SKUA_EXPORT:
		return ex_export((void __user *)arg);
	case SKUA_EXPORT_REVOKE:
		return ex_revoke((void __user *)arg);
	case SKUA_EXPORT_COUNT:
		return ex_count((void __user *)arg);
	}
	return -ENOTTY;
}

static const struct file_operations ex_fops = {
	.owner = THIS_MODULE,
	.unlocked_ioctl = ex_ioctl,
};

static struct miscdevice ex_device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "skua_exporter",
	.fops = &ex_fops,
	.mode = 0600,
};
module_misc_device(ex_device);

MODULE_DESCRIPTION("dma-bufs for tests of Skua");
MODULE_LICENSE("Dual BSD/GPL");
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 13, 0)
MODULE_IMPORT_NS(DMA_BUF);
#else
MODULE_IMPORT_NS("DMA_BUF");
#endif
