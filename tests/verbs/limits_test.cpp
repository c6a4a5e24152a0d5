// The limits that the device reports are exact: as many objects as it reports can be
// created, and not one more.
#include <cerrno>
#include <functional>

#include "verbs_test.hpp"

namespace weir::verbs_test {
namespace {

struct Kind {
  const char* name;
  int ibv_device_attr::* limit;
  // Makes one and gives back how it is destroyed; nothing: refused.
  std::function<std::function<int()>(ibv_context*, ibv_pd*, ibv_cq*)> make;
};

template <class T>
std::function<int()> or_nothing(T* object, int (*destroy)(T*)) {
  if (object == nullptr) return {};
  return [object, destroy] { return destroy(object); };
}

const Kind kinds[] = {
    {"queue_pairs", &ibv_device_attr::max_qp,
     [](ibv_context*, ibv_pd* pd, ibv_cq* cq) {
       ibv_qp_init_attr init = init_attr(cq, {.type = IBV_QPT_UC, .cap = {1, 1, 1, 1, 0}});
       return or_nothing(ibv_create_qp(pd, &init), ibv_destroy_qp);
     }},
    {"completion_queues", &ibv_device_attr::max_cq,
     [](ibv_context* context, ibv_pd*, ibv_cq*) {
       return or_nothing(ibv_create_cq(context, 1, nullptr, nullptr, 0), ibv_destroy_cq);
     }},
    {"shared_receive_queues", &ibv_device_attr::max_srq,
     [](ibv_context*, ibv_pd* pd, ibv_cq*) {
       ibv_srq_init_attr init{nullptr, {1, 1, 0}};
       return or_nothing(ibv_create_srq(pd, &init), ibv_destroy_srq);
     }},
    {"memory_windows", &ibv_device_attr::max_mw,
     [](ibv_context*, ibv_pd* pd, ibv_cq*) {
       return or_nothing(ibv_alloc_mw(pd, IBV_MW_TYPE_1), ibv_dealloc_mw);
     }},
    {"address_handles", &ibv_device_attr::max_ah,
     [](ibv_context* context, ibv_pd* pd, ibv_cq*) {
       ibv_ah_attr attr{};
       attr.port_num = 1;
       attr.is_global = 1;
       attr.grh.dgid = first_gid(context);
       return or_nothing(ibv_create_ah(pd, &attr), ibv_destroy_ah);
     }},
};

class Limits : public VerbsTest, public testing::WithParamInterface<Kind> {};
INSTANTIATE_TEST_SUITE_P(Of, Limits, testing::ValuesIn(kinds),
                         [](const auto& param_info) { return param_info.param.name; });

TEST_P(Limits, hold_exactly) {
  const Kind& kind = GetParam();
  ibv_device_attr device;
  ASSERT_EQ(ibv_query_device(context.get(), &device), 0);
  // The queue pairs' own CQ counts where CQs are counted.
  Cq cq;
  if (kind.limit == &ibv_device_attr::max_qp) cq = make_cq(1);
  std::vector<std::function<int()>> made;
  for (int i = 0; i < device.*kind.limit; ++i) {
    auto one = kind.make(context.get(), pd.get(), cq.get());
    ASSERT_TRUE(one) << i << " of " << device.*kind.limit << ": " << std::strerror(errno);
    made.push_back(std::move(one));
  }
  errno = 0;
  EXPECT_FALSE(kind.make(context.get(), pd.get(), cq.get())) << "one more";
  EXPECT_EQ(errno, ENOMEM);
  EXPECT_EQ(made.back()(), 0);
  made.back() = kind.make(context.get(), pd.get(), cq.get());
  EXPECT_TRUE(made.back()) << "one gone, one made";
  for (const auto& destroy : made) EXPECT_EQ(destroy(), 0);
}

}  // namespace
}  // namespace weir::verbs_test
