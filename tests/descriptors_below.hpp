// A shortage of descriptors: while one of these lives, the process can open descriptors only below a number.
#pragma once

#include <gtest/gtest.h>
#include <sys/resource.h>

namespace weir::test {

class DescriptorsBelow {
 public:
  explicit DescriptorsBelow(int end) {
    EXPECT_EQ(::getrlimit(RLIMIT_NOFILE, &before_), 0);
    rlimit low = before_;
    low.rlim_cur = static_cast<rlim_t>(end);
    EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &low), 0);
  }
  ~DescriptorsBelow() { EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &before_), 0); }
  DescriptorsBelow(const DescriptorsBelow&) = delete;
  DescriptorsBelow& operator=(const DescriptorsBelow&) = delete;

 private:
  rlimit before_{};
};

}  // namespace weir::test
