import os

from sqlalchemy import URL, BigInteger, String, create_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

from counted import Counter

url = URL.create(
    "mysql+pymysql",
    os.environ["SLOTTED_USER"],
    os.environ["SLOTTED_PASSWORD"],
    os.environ["SLOTTED_HOST"],
    int(os.environ["SLOTTED_PORT"]),
    os.environ["SLOTTED_DATABASE"],
)
engine = create_engine(url)


class Base(DeclarativeBase):
    pass


class Article(Base):
    __tablename__ = "articles"
    id: Mapped[int] = mapped_column(BigInteger, primary_key=True)
    title: Mapped[str] = mapped_column(String(100))
    views: Mapped[int] = mapped_column(BigInteger, server_default="0", index=True)


views = Counter(Article.views)


if __name__ == "__main__":
    with Session(engine) as session, session.begin():
        article = Article(title="Kept", views=1)
        session.add(article)
        session.flush()
        session.execute(views.add(article.id, 2))
